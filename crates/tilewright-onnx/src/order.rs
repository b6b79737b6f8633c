//! The order in which the nodes of a graph are imported: what computes a value stands before what reads it.
//!
//! Files should have their nodes in such an order, and many tools append nodes at the end all the same.
//! Nodes that are in order stay where they are.

use tilewright_ir::hash::{HashMap, HashSet};

use crate::proto::{GraphProto, NodeProto};

/// The names that the graphs of a node read from around them.
pub(crate) fn read_inside<'a>(node: &'a NodeProto, out: &mut Vec<&'a str>) {
    for graph in node.attribute.iter().filter_map(|a| a.g.as_deref()) {
        let mut names: Vec<&'a str> = graph.output.iter().map(|v| v.name.as_str()).collect();
        for inner in &graph.node {
            names.extend(inner.input.iter().filter(|n| !n.is_empty()).map(String::as_str));
            read_inside(inner, &mut names);
        }
        let mut own: HashSet<&str> = graph.input.iter().map(|v| v.name.as_str()).collect();
        own.extend(graph.initializer.iter().map(|t| t.name.as_str()));
        own.extend(graph.node.iter().flat_map(|n| &n.output).map(String::as_str));
        out.extend(names.into_iter().filter(|n| !own.contains(n)));
    }
}

/// A node on the way down to what it needs.
struct Visit {
    node: usize,
    /// The nodes that it reads from, of which those before `next` are done.
    needs: Vec<usize>,
    next: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    New,
    /// Something that it needs is looked at.
    Open,
    Done,
}

/// The nodes that are wanted, each behind those that it reads from, else in the order of the file.
/// `producers` are the nodes that compute a value.
///
/// # Errors
/// The nodes of a cycle, each of which reads from the next one, and the last one from the first.
pub(crate) fn sorted(
    graph: &GraphProto,
    producers: &HashMap<&str, usize>,
    wanted: &[bool],
) -> Result<Vec<usize>, Vec<usize>> {
    let mut state = vec![State::New; graph.node.len()];
    let mut order = Vec::new();
    for start in (0..graph.node.len()).filter(|node| wanted[*node]) {
        if state[start] != State::New {
            continue;
        }
        state[start] = State::Open;
        let mut way = vec![visit_of(start, graph, producers)];
        while let Some(top) = way.last_mut() {
            let Some(&need) = top.needs.get(top.next) else {
                state[top.node] = State::Done;
                order.push(top.node);
                way.pop();
                continue;
            };
            top.next += 1;
            match state[need] {
                State::Done => {}
                State::New => {
                    state[need] = State::Open;
                    way.push(visit_of(need, graph, producers));
                }
                State::Open => {
                    let from = way.iter().position(|v| v.node == need).unwrap_or(0);
                    return Err(way[from..].iter().map(|v| v.node).collect());
                }
            }
        }
    }
    Ok(order)
}

fn visit_of(node: usize, graph: &GraphProto, producers: &HashMap<&str, usize>) -> Visit {
    let proto = &graph.node[node];
    let mut names: Vec<&str> = proto.input.iter().map(String::as_str).collect();
    read_inside(proto, &mut names);
    let needs = names.into_iter().filter_map(|name| producers.get(name).copied()).collect();
    Visit { node, needs, next: 0 }
}
