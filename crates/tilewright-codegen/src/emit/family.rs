//! Functions of one form that differ in one number, and in others that follow from it, are one function that
//! takes the number: a family. A network whose layers grow by a step has few forms and many numbers, and
//! compiling takes as long as there are forms.
//!
//! What is known of a function's numbers was used when its text was written. Functions of one text have used the
//! same of each, so the common text is right for every one of them.

use std::cmp::Reverse;
use tilewright_ir::hash::HashMap;

use tilewright_ir::index::gcd;

use super::template::{Filled, Number, Use, fixed};

/// What a function is apart from its numbers.
pub(super) type TextParts<'a> = (&'a [String], &'a [String]);

/// Functions that become one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Family {
    /// The position of each member, with its number.
    pub members: Vec<(usize, i64)>,
    /// The numbers of the common text.
    pub numbers: Vec<(Filled, Use)>,
}

/// Functions in families, in the order of their first members. Those without others like them are alone.
pub(super) fn group(functions: &[(TextParts<'_>, &[Number])]) -> Vec<Family> {
    let mut of_form: HashMap<TextParts<'_>, Vec<usize>> = HashMap::default();
    for (k, (form, _)) in functions.iter().enumerate() {
        of_form.entry(*form).or_default().push(k);
    }
    let mut families = Vec::new();
    for mut left in of_form.into_values() {
        while let [first, others @ ..] = &left[..] {
            let (family, rest) = family(*first, others, |k| functions[*k].1);
            families.push(family);
            left = rest;
        }
    }
    families.sort_by_key(|family| family.members.first().map(|(k, _)| *k));
    families
}

/// The largest family of a function among others of its form, and the others that are not of it.
fn family<'a>(
    first: usize,
    others: &[usize],
    numbers: impl Fn(&usize) -> &'a [Number],
) -> (Family, Vec<usize>) {
    let start = numbers(&first);
    let mut by_direction: HashMap<Vec<i64>, Vec<usize>> = HashMap::default();
    for other in others {
        if let Some(direction) = direction(start, numbers(other)) {
            by_direction.entry(direction).or_default().push(*other);
        }
    }
    // Equal functions are on every line.
    let nowhere = vec![0; start.len()];
    let equal = by_direction.remove(&nowhere).unwrap_or_default();
    let (direction, along) = by_direction
        .into_iter()
        .max_by_key(|(_, all)| (all.len(), Reverse(all.first().copied())))
        .unwrap_or_default();
    let direction = if along.is_empty() { nowhere } else { direction };
    let mut members: Vec<usize> = [first].into_iter().chain(equal).chain(along).collect();
    members.sort_unstable();
    let joined =
        if members.len() > 1 { join_members(&members, &direction, &numbers) } else { None };
    let joined = joined.map(|family| (family, members));
    match joined {
        Some((family, members)) => {
            let rest = others.iter().filter(|k| !members.contains(k)).copied().collect();
            (family, rest)
        }
        None => (Family { members: vec![(first, 0)], numbers: fixed(start) }, others.to_vec()),
    }
}

/// By what the operands of two functions differ, in the smallest whole numbers; `None` where that is not known.
fn direction(from: &[Number], to: &[Number]) -> Option<Vec<i64>> {
    if from.len() != to.len() {
        return None;
    }
    let mut apart = Vec::with_capacity(from.len());
    for ((a, what), (b, _)) in from.iter().zip(to) {
        apart.push(match what {
            Use::Operand(_) => b.checked_sub(*a)?,
            Use::Bytes => 0,
        });
    }
    let common = apart.iter().fold(0, |d, x| gcd(d, i128::from(*x)));
    let common = i64::try_from(common).ok()?;
    let Some(first) = apart.iter().find(|x| **x != 0) else { return Some(apart) };
    let unit = common * first.signum();
    apart.iter().map(|x| x.checked_div(unit)).collect()
}

/// The family of functions that lie in one direction from the first; `None` where a number would be too large.
fn join_members<'a>(
    members: &[usize],
    direction: &[i64],
    numbers: &impl Fn(&usize) -> &'a [Number],
) -> Option<Family> {
    let start = numbers(&members[0]);
    let base = (0..direction.len())
        .filter(|k| direction[*k] != 0)
        .min_by_key(|k| (direction[*k].unsigned_abs(), *k));
    // The number of a member is one that it has, so that strides of several rows are seen to be multiples of one.
    let step = base.map_or(1, |base| direction[base]);
    let members: Vec<(usize, i64)> =
        members.iter().map(|k| (*k, base.map_or(0, |base| numbers(k)[base].0))).collect();
    let mut filled = Vec::with_capacity(start.len());
    for (column, (value, what)) in start.iter().enumerate() {
        let along = direction[column];
        if *what == Use::Bytes || along == 0 {
            let least = members.iter().map(|(k, _)| numbers(k)[column].0).min();
            filled.push((Filled::Fixed(least.unwrap_or(*value)), *what));
            continue;
        }
        if along % step != 0 {
            return None;
        }
        let factor = along / step;
        let offset = value.checked_sub(factor.checked_mul(members[0].1)?)?;
        for (k, n) in &members {
            let value = factor.checked_mul(*n)?.checked_add(offset)?;
            debug_assert_eq!(value, numbers(k)[column].0, "a member that is not on the line");
        }
        filled.push((Filled::Varies { factor, offset }, *what));
    }
    Some(Family { members, numbers: filled })
}

#[cfg(test)]
mod tests {
    use super::*;

    const I64: Use = Use::Operand("i64");

    fn families(forms: &[&str], numbers: &[&[Number]]) -> Vec<Vec<(usize, i64)>> {
        let texts: Vec<Vec<String>> = forms.iter().map(|form| vec![(*form).to_owned()]).collect();
        let functions: Vec<(TextParts<'_>, &[Number])> =
            texts.iter().zip(numbers).map(|(text, n)| ((&text[..], &[][..]), *n)).collect();
        group(&functions).into_iter().map(|family| family.members).collect()
    }

    #[test]
    fn numbers_on_a_line_are_one_family() {
        let numbers: [&[Number]; 4] = [
            &[(64, I64), (384, I64), (9, I64)],
            &[(96, I64), (576, I64), (9, I64)],
            &[(160, I64), (960, I64), (9, I64)],
            &[(160, I64), (961, I64), (9, I64)],
        ];
        let found = families(&["f"; 4], &numbers);
        assert_eq!(found, [vec![(0, 64), (1, 96), (2, 160)], vec![(3, 0)]]);
        assert_eq!(families(&["f", "g"], &[numbers[0], numbers[1]]).len(), 2);
        // Equal functions are one, whatever else there is.
        let again = families(&["f"; 4], &[numbers[0], numbers[1], numbers[0], numbers[2]]);
        assert_eq!(again, [vec![(0, 64), (1, 96), (2, 64), (3, 160)]]);
        assert_eq!(families(&["f"; 2], &[numbers[0], numbers[0]]), [vec![(0, 0), (1, 0)]]);
    }

    #[test]
    fn other_numbers_follow_from_the_one() {
        let own: [Vec<Number>; 2] = [64, 96].map(|k| {
            vec![(6 * k, I64), (k, Use::Operand("i32")), (8 * k, Use::Bytes), (7 - 2 * k, I64)]
        });
        let text = ["f".to_owned()];
        let functions = [((&text[..], &[][..]), &own[0][..]), ((&text[..], &[][..]), &own[1][..])];
        let [family] = &group(&functions)[..] else { panic!("one family") };
        assert_eq!(family.members, [(0, 64), (1, 96)]);
        let filled: Vec<Filled> = family.numbers.iter().map(|(filled, _)| *filled).collect();
        let varies = |factor, offset| Filled::Varies { factor, offset };
        assert_eq!(filled, [varies(6, 0), varies(1, 0), Filled::Fixed(512), varies(-2, 7)]);
    }

    #[test]
    fn what_is_too_far_apart_stays_alone() {
        let numbers: [&[Number]; 2] = [&[(i64::MIN, I64)], &[(i64::MAX, I64)]];
        assert_eq!(families(&["f"; 2], &numbers).len(), 2);
        // No number is a multiple of the other ones.
        let numbers: [&[Number]; 2] = [&[(2, I64), (3, I64)], &[(4, I64), (6, I64)]];
        assert_eq!(families(&["f"; 2], &numbers).len(), 2);
    }
}
