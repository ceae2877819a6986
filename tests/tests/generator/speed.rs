//! How long it takes with as many models as there are architectures. Bounds are generous: the times are printed.

use std::fs;
use std::time::{Duration, Instant};

use weft_tests::Workshop;

const MODELS: usize = 300;

#[test]
fn three_hundred_models() {
    let workshop = Workshop::with_fixture();
    for number in 1..MODELS {
        let text = format!(
            "model: m{number}\ntitle: M{number}\nextends: bert\ncategory: text-encoders\nconfig: {{hidden_size: {}}}\n",
            12 * number
        );
        workshop.spec(&format!("text-encoders/m{number}.yaml"), &text);
    }
    let time = |what: &str| {
        let start = Instant::now();
        let report = workshop.run().unwrap();
        let took = start.elapsed();
        println!("{what}: {} models, {} rendered, {took:?}", report.models.len(), report.rendered.len());
        (took, report.rendered.len())
    };
    let (all, rendered) = time("from nothing");
    assert_eq!(rendered, MODELS);
    let (nothing, rendered) = time("nothing to do");
    assert_eq!(rendered, 0);
    let path = workshop.path("specs/text-encoders/m7.yaml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("hidden_size: 84", "hidden_size: 96")).unwrap();
    let (one, rendered) = time("one changed");
    assert_eq!(rendered, 1);
    assert!(
        all < Duration::from_secs(60) && nothing < Duration::from_secs(2) && one < Duration::from_secs(10)
    );
}
