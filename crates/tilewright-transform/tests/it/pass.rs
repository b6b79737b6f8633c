//! Options of passes: what is given, and what is wrong with it.

use tilewright_transform::pass::{
    AnyOption, Config, Flag, Number, OneOf, Pass, Run, Text, check, find,
};

const SWITCH: Flag = Flag { name: "switch", summary: "", default: true };
const BITS: Number = Number { name: "bits", summary: "", default: 7, most: 15 };
const SIDE: OneOf<i32> =
    OneOf { name: "side", summary: "", of: &[("left", -1), ("right", 1), ("none", 0)], default: 1 };
const FIRST: Pass = Pass {
    name: "first",
    summary: "",
    options: &[&SWITCH, &BITS, &SIDE],
    run: Run::Tensor(|f, _, _| Ok(f.clone())),
};
const OTHER: Pass = Pass { name: "other", options: &[&FAR], ..FIRST };
const FAR: Text = Text { name: "far", summary: "", default: "away" };

fn errors(pairs: &[(&str, &str)]) -> String {
    let config = pairs.iter().fold(Config::new(), |c, (k, v)| c.with(*k, *v));
    match check(&config, &[&FIRST], &[&FIRST, &OTHER]) {
        Ok(()) => String::new(),
        Err(e) => e.render(),
    }
}

#[test]
fn values_are_read_by_their_types() {
    assert_eq!(given_of("x", ""), (Some(true), Some(7), Some(1)));
    for off in ["0", "false", "False", "off"] {
        assert_eq!(given_of("switch", off).0, Some(false), "{off}");
    }
    for wrong in ["", "no", "2", "banana", "OFF "] {
        assert_eq!(given_of("first.switch", wrong).0, None, "{wrong}");
    }
    assert_eq!((given_of("bits", "15").1, given_of("bits", "16").1), (Some(15), None));
    assert_eq!(
        (given_of("bits", "-1").1, given_of("bits", "+1").1, given_of("bits", "")),
        (None, None, { (Some(true), None, Some(1)) })
    );
    assert_eq!((given_of("side", "left").2, given_of("side", "Left").2), (Some(-1), None));
    assert_eq!(SIDE.default_value(), "right");
}

fn given_of(key: &str, value: &str) -> (Option<bool>, Option<u32>, Option<i32>) {
    let config = Config::new().with(key, value);
    let given = FIRST.given(&config);
    (given.get(&SWITCH).ok(), given.get(&BITS).ok(), given.get(&SIDE).ok())
}

#[test]
fn wrong_options_say_what_is_allowed() {
    assert_eq!(errors(&[("side", "up")]), {
        "error: the option `first.side` is left, right or none, not `up`\n"
    });
    assert_eq!(errors(&[("first.bits", "16")]), {
        "error: the option `first.bits` is a number from 0 to 15, not `16`\n"
    });
    assert_eq!(errors(&[("switch", "1"), ("first.switch", "off")]), {
        "error: the option `first.switch` is given as `1` and as `off`\n"
    });
    assert_eq!(errors(&[("switch", "1"), ("first.switch", "on")]), "");
    assert_eq!(errors(&[("other.far", "x")]), {
        "error: `other.far` is an option of `other`, which is not to run\n"
    });
    assert_eq!(errors(&[("swich", "1")]), {
        "error: none of the passes has an option `swich`\nnote: the passes are: first\n\
         note: their options are: first.switch, first.bits, first.side\n\
         help: did you mean `switch`?\n"
    });
    let unknown = find(&[&FIRST, &OTHER], "otter").expect_err("none").render();
    assert!(unknown.contains("there is no pass `otter`\n"), "{unknown}");
    assert!(unknown.contains("help: did you mean `other`?\n"), "{unknown}");
}
