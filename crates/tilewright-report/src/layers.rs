//! Places for the boxes and lines of an acyclic graph, drawn from top to bottom (after Sugiyama,
//! Tagawa and Toda 1981).
//!
//! 1. Each node gets the layer behind the last one that it reads from.
//! 2. A line over several layers gets a point in each layer that it crosses; lines of one source
//!    share their points.
//! 3. Layers are ordered by the mean position of the neighbours, down and up in turn; the order with
//!    the fewest crossings stays.
//! 4. Positions are those closest, in squares, to the means of the neighbours that keep the order and
//!    the distances: an isotonic regression, which is exact and linear.

/// Boxes are this high.
pub const HEIGHT: f64 = 38.0;
/// Between two layers.
pub const BETWEEN: f64 = 30.0;
/// Between two boxes of a layer.
const GAP: f64 = 18.0;
/// Rounds of ordering, and of placing.
const ROUNDS: usize = 12;

/// One source of lines: a node, and the nodes that read from it.
pub struct Net {
    pub from: usize,
    pub to: Vec<usize>,
}

/// Where everything is.
pub struct Drawing {
    /// Of each node, the middle of its upper edge.
    pub nodes: Vec<(f64, f64)>,
    /// Of each net, its lines: from the lower end of what is above to the upper end of what is below.
    pub nets: Vec<Vec<Line>>,
    pub width: f64,
    pub height: f64,
}

/// A line from one layer to the next.
pub struct Line {
    pub from: (f64, f64),
    pub to: (f64, f64),
    /// Whether it goes on at `to`, across the layer.
    pub goes_on: bool,
}

/// A node, or a point of a line.
struct Item {
    layer: usize,
    width: f64,
    up: Vec<usize>,
    down: Vec<usize>,
    is_node: bool,
    x: f64,
}

impl Item {
    fn new(layer: usize, width: f64, is_node: bool) -> Item {
        Item { layer, width, up: Vec::new(), down: Vec::new(), is_node, x: 0.0 }
    }
}

/// Draws nodes of these widths. Lines that would close a cycle are left out.
pub fn draw(widths: &[f64], nets: &[Net]) -> Drawing {
    let layers = layers(widths.len(), nets);

    let mut items: Vec<Item> =
        widths.iter().zip(&layers).map(|(width, layer)| Item::new(*layer, *width, true)).collect();
    let mut parts: Vec<Vec<(usize, usize)>> = Vec::new();
    for net in nets {
        let mut lines = Vec::new();
        let mut to: Vec<usize> =
            net.to.iter().copied().filter(|t| layers[*t] > layers[net.from]).collect();
        to.sort_by_key(|t| layers[*t]);
        to.dedup();
        let (mut last, mut at) = (net.from, layers[net.from]);
        for target in to {
            while at + 1 < layers[target] {
                at += 1;
                items.push(Item::new(at, 2.0, false));
                lines.push((last, items.len() - 1));
                last = items.len() - 1;
            }
            lines.push((last, target));
        }
        for (a, b) in &lines {
            items[*a].down.push(*b);
            items[*b].up.push(*a);
        }
        parts.push(lines);
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |l| l + 1)];
    for (k, item) in items.iter().enumerate() {
        rows[item.layer].push(k);
    }
    order(&mut rows, &items);
    place(&rows, &mut items);
    finish(&items, &parts, widths.len(), rows.len())
}

/// The layer of each node.
fn layers(nodes: usize, nets: &[Net]) -> Vec<usize> {
    let mut wait = vec![0usize; nodes];
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    for net in nets {
        for t in &net.to {
            wait[*t] += 1;
            out[net.from].push(*t);
        }
    }
    let mut layers = vec![0usize; nodes];
    let sources: Vec<usize> = (0..nodes).filter(|n| wait[*n] == 0).collect();
    let mut ready = sources.clone();
    while let Some(n) = ready.pop() {
        for t in &out[n] {
            layers[*t] = layers[*t].max(layers[n] + 1);
            wait[*t] -= 1;
            if wait[*t] == 0 {
                ready.push(*t);
            }
        }
    }
    // What reads nothing stands right above what reads it.
    for n in sources {
        if let Some(first) = out[n].iter().map(|t| layers[*t]).min() {
            layers[n] = first.saturating_sub(1);
        }
    }
    layers
}

/// Orders the layers so that few lines cross.
fn order(rows: &mut Vec<Vec<usize>>, items: &[Item]) {
    let mut position = vec![0.0f64; items.len()];
    number_items(rows, &mut position);
    let (mut best, mut fewest) = (rows.clone(), crossings(rows, items));
    for round in 0..ROUNDS {
        if fewest == 0 {
            break;
        }
        let down = round % 2 == 0;
        let count = rows.len();
        for step in 0..count {
            let row = &mut rows[if down { step } else { count - 1 - step }];
            let mut keyed: Vec<(f64, usize)> =
                row.iter().map(|n| (mean_position(*n, down, items, &position), *n)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, n)| n).collect();
            row.iter().enumerate().for_each(|(k, n)| position[*n] = k as f64);
        }
        let now = crossings(rows, items);
        if now < fewest {
            (best, fewest) = (rows.clone(), now);
        }
    }
    *rows = best;
}

fn number_items(rows: &[Vec<usize>], position: &mut [f64]) {
    for row in rows {
        row.iter().enumerate().for_each(|(k, n)| position[*n] = k as f64);
    }
}

fn mean_position(n: usize, down: bool, items: &[Item], position: &[f64]) -> f64 {
    let near = if down { &items[n].up } else { &items[n].down };
    if near.is_empty() {
        position[n]
    } else {
        near.iter().map(|m| position[*m]).sum::<f64>() / near.len() as f64
    }
}

/// How many lines cross.
fn crossings(rows: &[Vec<usize>], items: &[Item]) -> usize {
    let mut position = vec![0usize; items.len()];
    rows.iter().flat_map(|row| row.iter().enumerate()).for_each(|(k, n)| position[*n] = k);
    let mut total = 0;
    for (k, row) in rows.iter().enumerate().skip(1) {
        // The lines by their upper ends; of each, those before it that end further right.
        let mut seen = vec![0usize; row.len() + 1];
        let mut count = 0;
        for n in &rows[k - 1] {
            let ends: Vec<usize> = items[*n].down.iter().map(|d| position[*d]).collect();
            for end in &ends {
                let (mut at, mut before) = (end + 1, 0);
                while at > 0 {
                    before += seen[at];
                    at &= at - 1;
                }
                total += count - before;
            }
            for end in ends {
                count += 1;
                let mut at = end + 1;
                while at <= row.len() {
                    seen[at] += 1;
                    at += at & at.wrapping_neg();
                }
            }
        }
    }
    total
}

/// Gives every item its `x`.
fn place(rows: &[Vec<usize>], items: &mut [Item]) {
    for row in rows {
        let mut x = 0.0;
        for n in row {
            items[*n].x = x + items[*n].width / 2.0;
            x += items[*n].width + GAP;
        }
        let middle = x / 2.0;
        row.iter().for_each(|n| items[*n].x -= middle);
    }
    for round in 0..2 * ROUNDS {
        // Down and up in turn, and at last to both sides.
        let (down, both) = (round % 2 == 0, round + 4 >= 2 * ROUNDS);
        for step in 0..rows.len() {
            let row = &rows[if down { step } else { rows.len() - 1 - step }];
            let wanted: Vec<(f64, f64)> = row
                .iter()
                .map(|n| {
                    let item = &items[*n];
                    let above = item.up.iter().filter(|_| down || both);
                    let near = above.chain(item.down.iter().filter(|_| !down || both));
                    let (mut sum, mut count, mut is_line) = (0.0, 0.0, !item.is_node);
                    for m in near {
                        sum += items[*m].x;
                        count += 1.0;
                        is_line &= !items[*m].is_node;
                    }
                    if count > 0.0 {
                        // A line that goes on should be straight.
                        (sum / count, if is_line { 8.0 } else { 1.0 })
                    } else {
                        (item.x, 0.1)
                    }
                })
                .collect();
            let room: Vec<f64> = row.iter().map(|n| items[*n].width).collect();
            for (n, x) in row.iter().zip(spread(&wanted, &room)) {
                items[*n].x = x;
            }
        }
    }
}

/// The positions closest to those wanted (each with its weight) that leave room for the widths and
/// the gaps between them.
fn spread(wanted: &[(f64, f64)], widths: &[f64]) -> Vec<f64> {
    let mut start = 0.0;
    let mut offsets = Vec::new();
    for (k, width) in widths.iter().enumerate() {
        if k > 0 {
            start += (widths[k - 1] + width) / 2.0 + GAP;
        }
        offsets.push(start);
    }
    // Groups that touch: the mean of what they want, its weight, and how many they are.
    let mut groups: Vec<(f64, f64, usize)> = Vec::new();
    for ((x, weight), offset) in wanted.iter().zip(&offsets) {
        let mut group = (x - offset, *weight, 1);
        while let Some(last) = groups.pop_if(|last| last.0 > group.0) {
            let weight = last.1 + group.1;
            group = ((last.0 * last.1 + group.0 * group.1) / weight, weight, last.2 + group.2);
        }
        groups.push(group);
    }
    let starts = groups.into_iter().flat_map(|(x, _, n)| std::iter::repeat_n(x, n));
    starts.zip(offsets).map(|(x, offset)| x + offset).collect()
}

fn finish(items: &[Item], parts: &[Vec<(usize, usize)>], nodes: usize, rows: usize) -> Drawing {
    let left = items.iter().map(|i| i.x - i.width / 2.0).fold(f64::INFINITY, f64::min);
    let right = items.iter().map(|i| i.x + i.width / 2.0).fold(f64::NEG_INFINITY, f64::max);
    let shift = if items.is_empty() { 0.0 } else { GAP - left };
    Drawing {
        nodes: items[..nodes].iter().map(|i| (i.x + shift, top_of(i))).collect(),
        nets: parts
            .iter()
            .map(|l| l.iter().map(|(a, b)| line_between(*a, *b, items, shift)).collect())
            .collect(),
        width: if items.is_empty() { 0.0 } else { right - left + 2.0 * GAP },
        height: GAP + rows as f64 * (HEIGHT + BETWEEN),
    }
}

fn top_of(item: &Item) -> f64 {
    GAP + item.layer as f64 * (HEIGHT + BETWEEN)
}

/// Where the lines of a box start or end, side by side.
fn port_of(at: usize, other: usize, near: &[usize], items: &[Item]) -> f64 {
    let item = &items[at];
    if !item.is_node {
        return item.x;
    }
    let mut xs: Vec<(f64, usize)> = near.iter().map(|n| (items[*n].x, *n)).collect();
    xs.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    xs.dedup_by_key(|(_, n)| *n);
    let k = xs.iter().position(|(_, n)| *n == other).unwrap_or(0);
    let step = (item.width * 0.7 / xs.len() as f64).min(24.0);
    item.x + (k as f64 - (xs.len() - 1) as f64 / 2.0) * step
}

fn line_between(a: usize, b: usize, items: &[Item], shift: f64) -> Line {
    Line {
        // All lines of one net start together.
        from: (items[a].x + shift, top_of(&items[a]) + HEIGHT),
        to: (port_of(b, a, &items[b].up, items) + shift, top_of(&items[b])),
        goes_on: !items[b].is_node,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No line points up, no boxes of one layer meet.
    fn check(widths: &[f64], nets: &[Net]) -> Drawing {
        let drawing = draw(widths, nets);
        for (net, lines) in nets.iter().zip(&drawing.nets) {
            for to in &net.to {
                assert!(drawing.nodes[net.from].1 < drawing.nodes[*to].1);
                let ends = lines.iter().any(|l| !l.goes_on && l.to.1 == drawing.nodes[*to].1);
                assert!(ends, "a line reaches {to}");
            }
            for line in lines {
                assert!((line.to.1 - line.from.1 - BETWEEN).abs() < 1e-9);
            }
        }
        for (k, a) in drawing.nodes.iter().enumerate() {
            let reach = widths[k] / 2.0;
            assert!(a.0 - reach >= 0.0 && a.0 + reach <= drawing.width);
            assert!(a.1 >= 0.0 && a.1 + HEIGHT <= drawing.height);
            for (n, b) in drawing.nodes.iter().enumerate().skip(k + 1) {
                let apart = (a.0 - b.0).abs() >= reach + widths[n] / 2.0 + GAP - 1e-6;
                assert!(a.1 != b.1 || apart, "{k} and {n} are apart");
            }
        }
        drawing
    }

    fn net(from: usize, to: &[usize]) -> Net {
        Net { from, to: to.to_vec() }
    }

    #[test]
    fn a_line_past_a_box_goes_around_it() {
        // 0 -> 1 -> 2 -> 3, and 0 -> 3.
        let nets = [net(0, &[1, 3]), net(1, &[2]), net(2, &[3])];
        let drawing = check(&[100.0; 4], &nets);
        let past: Vec<&Line> = drawing.nets[0].iter().filter(|l| l.goes_on).collect();
        assert_eq!(past.len(), 2);
        for line in past {
            let boxes = drawing.nodes.iter().filter(|n| n.1 == line.to.1);
            boxes.for_each(|n| assert!((n.0 - line.to.0).abs() >= 50.0));
        }
    }

    #[test]
    fn layers_follow_the_longest_path_and_sources_stand_by_their_readers() {
        let nets = [net(0, &[1]), net(1, &[2]), net(3, &[2])];
        assert_eq!(layers(4, &nets), [0, 1, 2, 1]);
        check(&[10.0, 40.0, 10.0, 10.0], &nets);
    }

    #[test]
    fn crossings_that_need_not_be_are_gone() {
        // Two chains whose ends are listed the other way round.
        let nets = [net(0, &[3]), net(1, &[2])];
        let drawing = check(&[20.0; 4], &nets);
        let x = |n: usize| drawing.nodes[n].0;
        assert_eq!(x(0) < x(1), x(3) < x(2));
    }

    #[test]
    fn a_chain_is_straight() {
        let nets = [net(0, &[1]), net(1, &[2])];
        let drawing = check(&[10.0, 90.0, 30.0], &nets);
        assert!(drawing.nodes.iter().all(|n| (n.0 - drawing.nodes[0].0).abs() < 1e-6));
    }

    #[test]
    fn blocks_with_a_line_past_them_do_not_drift() {
        // Sixteen times three boxes in a chain with a line around them.
        let mut nets: Vec<Net> = (0..64).map(|n| net(n, &[n + 1])).collect();
        nets.iter_mut().step_by(4).for_each(|n| n.to.push(n.from + 4));
        let drawing = check(&[100.0; 65], &nets);
        assert!(drawing.width < 300.0, "{}", drawing.width);
    }

    #[test]
    fn random_graphs_keep_the_rules() {
        let mut state = 7u64;
        let mut random = move |n: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % n
        };
        for _ in 0..60 {
            let n = 1 + random(30);
            let widths: Vec<f64> = (0..n).map(|_| 10.0 + random(100) as f64).collect();
            let to = |k: usize, random: &mut dyn FnMut(usize) -> usize| {
                let mut to: Vec<usize> = (0..random(4)).map(|_| k + 1 + random(n - k)).collect();
                to.retain(|t| *t < n);
                to
            };
            let nets: Vec<Net> =
                (0..n).map(|from| Net { from, to: to(from, &mut random) }).collect();
            check(&widths, &nets);
        }
        let nothing = draw(&[], &[]);
        assert_eq!((nothing.width, nothing.nodes.len()), (0.0, 0));
    }
}
