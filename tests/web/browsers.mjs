// Headless browsers behind one interface: Chromium by playwright-core, Firefox by puppeteer-core (WebDriver BiDi), WebKit by
// WebKitWebDriver, which comes with WebKitGTK and needs a display (Xvfb).
//
// WEFT_PLAYWRIGHT and WEFT_PUPPETEER name the modules where they are not found by themselves.

import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

const GPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader', '--enable-features=WebMachineLearningNeuralNetwork'];
const QUIET = ['--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update'];

/**
 * Opens a browser by the path of its program, with a profile of its own that is kept until `close`.
 * `more` are arguments of Chromium's. What it gives has `name`, `goto(url)`, `evaluate(function, argument)` and `close()`, and `ephemeral` where no cache outlives a worker.
 */
export async function browser(program, more = []) {
  const name = basename(program);
  if (name.includes('firefox')) return firefox(program);
  if (name.includes('WebDriver')) return webkit(program);
  return chromium(program, more);
}

const say = (text) => console.error(`page: ${text}`);

async function chromium(program, more) {
  const { chromium } = (await import(process.env.WEFT_PLAYWRIGHT ?? 'playwright-core')).default;
  const profile = await mkdtemp(join(tmpdir(), 'weft-chromium-'));
  const args = [...QUIET, ...GPU, ...more];
  const context = await chromium.launchPersistentContext(profile, { executablePath: program, chromiumSandbox: false, args });
  const page = await context.newPage();
  page.on('console', (message) => say(message.text()));
  page.on('pageerror', say);
  return {
    name: `Chromium ${context.browser()?.version() ?? ''}`.trim(),
    goto: (url) => page.goto(url),
    evaluate: (code, argument) => page.evaluate(code, argument),
    context,
    page,
    async close() {
      await context.close();
      await rm(profile, { recursive: true, force: true });
    },
  };
}

async function firefox(program) {
  const puppeteer = (await import(process.env.WEFT_PUPPETEER ?? 'puppeteer-core')).default;
  const extraPrefsFirefox = { 'dom.webgpu.enabled': true, 'dom.webgpu.workers.enabled': true, 'gfx.webgpu.ignore-blocklist': true, 'dom.serviceWorkers.testing.enabled': true };
  const options = { browser: 'firefox', executablePath: program, headless: true, extraPrefsFirefox, protocolTimeout: 1_200_000 };
  const started = await puppeteer.launch(options);
  const page = await started.newPage();
  page.on('console', (message) => say(message.text()));
  page.on('pageerror', say);
  return {
    name: await started.version(),
    goto: (url) => page.goto(url),
    evaluate: (code, argument) => page.evaluate(code, argument),
    close: () => started.close(),
  };
}

async function webkit(program) {
  const port = 20_000 + (process.pid % 10_000);
  const environment = { ...process.env, JSC_useSharedArrayBuffer: '1', WEBKIT_DISABLE_COMPOSITING_MODE: '1' };
  const arguments_ = ['-a', program, `--port=${port}`];
  const driver = spawn('xvfb-run', arguments_, { env: environment, stdio: 'ignore', detached: true });
  const send = async (method, path, body) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body: body && JSON.stringify(body) });
    const { value } = await answer.json();
    if (value?.error) throw new Error(`${value.error}: ${value.message}`);
    return value;
  };
  const wait = async (tries) => {
    try {
      return await send('GET', '/status');
    } catch (error) {
      if (tries === 0) throw error;
      await new Promise((resolve) => setTimeout(resolve, 500));
      return wait(tries - 1);
    }
  };
  await wait(60);
  const { sessionId, capabilities } = await send('POST', '/session', { capabilities: { alwaysMatch: {} } });
  const at = `/session/${sessionId}`;
  await send('POST', `${at}/timeouts`, { script: 1_200_000 });
  return {
    name: `${capabilities.browserName} ${capabilities.browserVersion}`,
    // What a worker keeps in the cache of an automation session is gone with the worker.
    ephemeral: true,
    goto: (url) => send('POST', `${at}/url`, { url }),
    async evaluate(code, argument) {
      const script = `const [argument, done] = arguments;
        (${code})(argument).then((value) => done({ value: JSON.stringify(value) }), (error) => done({ error: String(error) }));`;
      const { value, error } = await send('POST', `${at}/execute/async`, { script, args: [argument] });
      if (error) throw new Error(error);
      return value === undefined ? undefined : JSON.parse(value);
    },
    async close() {
      await send('DELETE', at).catch(() => {});
      process.kill(-driver.pid);
    },
  };
}
