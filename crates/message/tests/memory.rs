//! What messages hold together. A process of its own: there is one count, and one bound.

use busbar_message::memory::{Held, Shortage, held, hold, is_scarce, is_short, refused, set_most, try_hold};
use busbar_message::{Body, Payload, PayloadError, PayloadLimits, Reading};

const ROOM: usize = 1 << 20;

#[test]
fn what_is_held_is_bounded_and_given_back() {
    set_most(ROOM);
    counts();
    payloads();
    assert_eq!(held(), 0, "all of it is given back");
}

fn counts() {
    assert_eq!((hold(100).bytes(), held()), (0, 0), "small things are not counted");
    let mut one = try_hold(ROOM / 4).expect("there is room");
    assert!(!is_scarce() && !is_short());
    assert_eq!(try_hold(ROOM).err(), Some(Shortage));
    one.try_grow(ROOM / 4 * 3).expect("there is room");
    assert!(is_scarce() && !is_short() && refused() == 1);
    let more = Held::clone(&one);
    assert!(is_short(), "a copy counts, whether it may or not");
    drop((one, more));
    assert_eq!(held(), 0);
}

fn payloads() {
    let limits = PayloadLimits::default();
    let text = format!("<a>{}</a>", "<b>text</b>".repeat(5000));
    let payload = || {
        let mut payload = Payload::received(Body::Bytes(text.clone().into()), Reading::XML);
        payload.envelope(&limits).map(|_| ()).map(|()| payload)
    };
    let first = payload().expect("there is room for a tree");
    let one = held();
    assert!((5000 * 64..ROOM).contains(&one), "{one}");
    // Copies share it.
    let copies: Vec<Payload> = (0..100).map(|_| first.copy()).collect();
    assert_eq!(held(), one);
    drop(first);
    assert_eq!(held(), one, "the copies have it");
    let mut kept = Vec::new();
    let refused = loop {
        match payload() {
            Ok(payload) => kept.push(payload),
            Err(why) => break why,
        }
    };
    assert!(matches!(refused, PayloadError::Shortage(_)) && kept.len() < 10 && held() <= ROOM);
    drop((copies, kept));
    payload().expect("there is room again");
    let mut json = Payload::empty();
    json.set_json_value(serde_json::Value::from("x".repeat(10_000)));
    let one = held();
    assert!(one >= 10_000);
    let mut copy = json.copy();
    assert_eq!(held(), one, "copies share a value too");
    drop(json);
    assert!(copy.json().is_ok_and(|json| json.is_some()));
    assert_eq!(held(), one);
}
