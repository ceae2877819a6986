#!/usr/bin/env bash
# A farm on one machine: Slurm with four virtual nodes, of which two are killed with their tasks, and the driver once.
#
#   tests/farm/check.sh [MODEL ...]        (as root; Debian: slurmctld slurmd slurm-client munge)
#
# The records that come together must be those of a single run: each case with the same outcome.
set -euo pipefail
cd "$(dirname "$0")/../.."

models=("$@")
[ ${#models[@]} -gt 0 ] || models=(bert roberta distilbert gpt2 llama t5 vit clip)
for program in munged slurmctld slurmd sbatch; do
  command -v "$program" >/dev/null || { echo "error: there is no $program" >&2; echo "  help: apt install slurmctld slurmd slurm-client munge" >&2; exit 2; }
done

here=$(mktemp -d /tmp/weft-farm.XXXXXX)
mkdir -p "$here"/{state,spool,log} /run/munge
export SLURM_CONF=$here/slurm.conf
{
  cat <<CONF
ClusterName=weft
SlurmctldHost=$(hostname)(127.0.0.1)
SlurmctldPort=16817
AuthType=auth/munge
SlurmUser=root
SlurmdUser=root
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdTimeout=10
StateSaveLocation=$here/state
SlurmdSpoolDir=$here/spool/%n
SlurmctldPidFile=$here/slurmctld.pid
SlurmdPidFile=$here/slurmd-%n.pid
SlurmctldLogFile=$here/log/slurmctld
SlurmdLogFile=$here/log/%n
PartitionName=devices Nodes=ALL Default=YES State=UP
CONF
  for n in 1 2 3 4; do
    echo "NodeName=n$n NodeHostname=$(hostname) NodeAddr=127.0.0.1 Port=1682$n CPUs=1 RealMemory=2000 Feature=cpu"
  done
} >"$SLURM_CONF"

ended() {
  scancel --me 2>/dev/null || true
  for pid in "$here"/slurmd-*.pid "$here"/slurmctld.pid "$here"/munged.pid; do
    [ -f "$pid" ] && kill "$(cat "$pid")" 2>/dev/null
  done
  sleep 2
  [ -n "${KEEP:-}" ] || rm -rf "$here"
}
trap ended EXIT

if ! munge -n </dev/null 2>/dev/null | unmunge >/dev/null 2>&1; then
  chown munge: /run/munge && chmod 755 /run/munge
  (cd / && setpriv --reuid=munge --regid=munge --clear-groups munged --force --pid-file=/run/munge/weft.pid)
fi
slurmctld -f "$SLURM_CONF"
node() { slurmd -f "$SLURM_CONF" -N "$1"; }
for n in 1 2 3 4; do node n$n; done
for _ in $(seq 30); do [ "$(sinfo -h -o %T)" = idle ] && break; sleep 1; done
sinfo

pick=()
for model in "${models[@]}"; do pick+=(--model "$model"); done
cargo build --quiet --package xtask
xtask=$(pwd)/target/debug/xtask
single=$SECONDS
"$xtask" test "${pick[@]}" --jobs 1 --json >"$here/single.json"
echo "one run: $((SECONDS - single)) s"

farm=("$xtask" farm --on slurm --in "$here/run" --per-task 1 --poll 1 "${pick[@]}" --json)
# A folder's first driver packs, hands out, and dies.
"${farm[@]}" >"$here/farm.json" 2>"$here/log/driver-1" &
driver=$!
for _ in $(seq 600); do [ -f "$here/run/batches/0.json" ] && break; sleep 1; done
began=$SECONDS
sleep 3
kill -9 "$driver" 2>/dev/null && echo "the driver is killed"
wait "$driver" 2>/dev/null || true

# The next one follows; a node is killed with what runs on it, comes back, and is killed again.
"${farm[@]}" >"$here/farm.json" 2>"$here/log/driver-2" &
driver=$!
for n in n1 n2; do
  for _ in $(seq 120); do squeue -h -w "$n" -t R | grep -q . && break; sleep 0.5; done
  echo "node $n is killed, with: $(squeue -h -r -w "$n" -o '%j %K' | tr '\n' ' ')"
  ran=$(squeue -h -r -w "$n" -o '%A %j %K')
  kill -9 "$(cat "$here/slurmd-$n.pid")"
  while read -r job name place; do
    # First the step's keeper, so that nobody reports the end of the task.
    pkill -9 -f "slurmstepd: \\[$job\\." || true
    pkill -9 -f "farm-task $here/run ${name##*-} $place\$" || true
  done <<<"$ran"
done
sleep 15
for n in n1 n2; do rm -f "$here/slurmd-$n.pid"; node "$n"; done
wait "$driver"
echo "the farm: $((SECONDS - began)) s from its first batch, with all that was killed"
echo "times that the driver handed lost tasks out again: $(grep -c "handed out again" "$here/log/driver-2" || true)"

python3 - "$here/single.json" "$here/farm.json" <<'PY'
import json, sys

def outcomes(summary):
    records = map(json.loads, open(json.load(open(summary))["records"]))
    return {(r["model"], r["backend"], r["precision"], r["case"]): (r["evidence"], r["passed"]) for r in records}

one, farm = map(outcomes, sys.argv[1:])
if one != farm:
    for key in sorted(set(one) | set(farm)):
        if one.get(key) != farm.get(key):
            print(key, one.get(key), farm.get(key))
    sys.exit("the records differ")
print(f"{len(one)} records, the same from one run and from the farm")
PY
