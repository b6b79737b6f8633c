//! Which values between calls, and which constants, lie in textures.
//!
//! A texture is memory of two physical axes whose elements are texels of a few channels (RFC 0039). A value lies
//! in one where
//!
//! * its last axis is the channels of a texel, and a separator makes rows and columns of its axes that the
//!   texture takes: the layout of channels in blocks of four, `[n, c // 4, h, w, c % 4]`, has rows `[n, c // 4, h]`
//!   and columns `[w, c % 4]`;
//! * the call that makes it writes each of its cells once, as they lie: then texels are written as a whole;
//! * every call that reads it does nothing else with it, and nothing else has its memory: it is no input, result or
//!   view.
//!
//! A constant, such as the weights of a convolution, lies in one where its readers and its shape allow that; its memory
//! stays as it is, so devices copy it to a texture once.
//!
//! So there is one choice a value, and no conversion: the order of cells is that of the buffer. Whether reads are
//! cheaper there is the target's to say, by its cost model. The padding of what reads a window may be the border
//! of the texture: `use_border` proves where.

use std::sync::Arc;
use tilewright_ir::hash::{HashMap, HashSet};

use tilewright_analysis::open_stages;
use tilewright_graph::functions::{Functions, rewritten};
use tilewright_graph::marks::{COPY, VIEW};
use tilewright_graph::normal::{each_binding, needed, var};
use tilewright_ir::visit::{Subst, accessed, fold_func};
use tilewright_ir::{
    Binding, Buffer, DType, Error, Expr, GraphExpr, GraphFunc, GraphVar, Module, Remarks, Result,
    TensorFunc,
};

/// Memory of textures, as a target has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextureMemory {
    /// The scope of buffers in it.
    pub scope: Arc<str>,
    /// That of constants.
    pub weights: Arc<str>,
    /// Channels of a texel.
    pub channels: i64,
    /// Most rows, and most texels of a row.
    pub most: [i64; 2],
}

/// A module whose values between calls lie in textures where they can. Says of others why they do not.
///
/// # Errors
/// Those of [`normalize`](tilewright_graph::normal::normalize).
pub fn place_in_textures(
    module: &Module,
    memory: &TextureMemory,
    why: &mut Remarks,
) -> Result<Module> {
    rewritten(module, |functions, graph| {
        let chosen = chosen(functions, graph, memory, why);
        each_binding(graph, |b, out| {
            out.push(placed(functions, b, &chosen)?);
            Ok(())
        })
    })
}

/// Where a value is read: the call, and the place among its arguments.
type Reads<'a> = HashMap<u64, Vec<(&'a Binding, usize)>>;

/// How a value lies in a texture.
#[derive(Clone)]
struct Placed {
    scope: Arc<str>,
    separator: usize,
}

/// The values that lie in textures.
fn chosen(
    functions: &Functions<'_>,
    graph: &GraphFunc,
    memory: &TextureMemory,
    why: &mut Remarks,
) -> HashMap<u64, Placed> {
    let mut reads: Reads<'_> = HashMap::default();
    // Values whose memory others have, too.
    let mut shared: HashSet<u64> = graph.params.iter().map(GraphVar::id).collect();
    needed(&graph.ret, &mut |v| {
        shared.insert(v.id());
    });
    for b in graph.bindings() {
        match called(functions, b) {
            Some((_, args)) => {
                for (k, arg) in args.iter().enumerate() {
                    match arg {
                        GraphExpr::Var(v) => reads.entry(v.id()).or_default().push((b, k)),
                        other => needed(other, &mut |v| {
                            shared.insert(v.id());
                        }),
                    }
                }
            }
            None => needed(&b.value, &mut |v| {
                shared.insert(v.id());
            }),
        }
    }
    let mut chosen = HashMap::default();
    for b in graph.bindings().filter(|b| !shared.contains(&b.var.id())) {
        let readers = reads.get(&b.var.id()).map_or(&[][..], Vec::as_slice);
        let (scope, made) = match &b.value {
            GraphExpr::Const(_) => (&memory.weights, None),
            _ => {
                let Some((func, args)) = called(functions, b) else { continue };
                let Some(result) = result(func, args.len()) else { continue };
                (&memory.scope, Some((func, result)))
            }
        };
        // A constant is as its readers have it.
        let buffer = match &made {
            Some((_, result)) => Some(result.clone()),
            None => readers
                .first()
                .and_then(|(b, k)| called(functions, b)?.0.buffers().nth(*k))
                .cloned(),
        };
        let Some(separator) = buffer.and_then(|b| separator(&b, memory)) else { continue };
        let refused = made
            .and_then(|(func, result)| maker_refusal(func, &result))
            .or_else(|| reader_refusal(functions, readers));
        match refused {
            None => {
                chosen.insert(b.var.id(), Placed { scope: scope.clone(), separator });
            }
            Some(reason) => {
                let what = format!("`{}` stays in a buffer: {reason}", b.var.name());
                why.push(Error::refused(what).at(b.span));
            }
        }
    }
    chosen
}

/// The function of a call that computes one result, and its arguments; `None` where memory is shared.
fn called<'a, 'b>(
    functions: &'a Functions<'_>,
    b: &'b Binding,
) -> Option<(&'a Arc<TensorFunc>, &'b [GraphExpr])> {
    let GraphExpr::CallTir { func, args, outs, .. } = &b.value else { return None };
    let f = functions.get(func)?;
    let whole = f.buffers().count() == args.len() + outs.len();
    let own = !f.attrs.contains_key(VIEW) && !f.attrs.contains_key(COPY);
    (whole && own && outs.len() == 1).then_some((f, args))
}

fn result(func: &TensorFunc, args: usize) -> Option<Buffer> {
    func.buffers().nth(args).cloned()
}

/// After how many axes the rows of a texture end: as many as leave the last axis but one to the columns, else the
/// first number that fits.
fn separator(buffer: &Buffer, memory: &TextureMemory) -> Option<usize> {
    let shape = buffer.const_shape()?;
    let texels = buffer.dtype() == DType::F32
        && buffer.strides.is_empty()
        && buffer.axis_separators.is_empty()
        && shape.len() >= 3
        && shape.last() == Some(&memory.channels);
    if !texels {
        return None;
    }
    let count = |axes: &[i64]| axes.iter().try_fold(1i64, |n, d| n.checked_mul(*d));
    let fits = |k: usize| {
        let (rows, columns) = shape.split_at(k);
        let extents = [count(rows), count(columns).map(|n| n / memory.channels)];
        let both = extents.iter().zip(memory.most);
        both.into_iter().all(|(n, most)| n.is_some_and(|n| (1..=most).contains(&n)))
    };
    let wanted = shape.len() - 2;
    [wanted].into_iter().chain((1..shape.len()).rev().filter(|k| *k != wanted)).find(|k| fits(*k))
}

/// Why a value stays in a buffer, for what makes it.
fn maker_refusal(maker: &TensorFunc, result: &Buffer) -> Option<String> {
    let Some(stages) = open_stages(maker) else { return Some("its maker is no stages".into()) };
    let mut writes = stages.iter().filter(|s| s.buffer == *result);
    let (Some(stage), None) = (writes.next(), writes.next()) else {
        return Some("it is written by several stages".into());
    };
    let whole = stage.covers_buffer().is_some_and(|axes| axes.iter().all(Option::is_some));
    let read = stages.iter().any(|s| {
        let own = s.is_reduction() && s.buffer == *result;
        !own && s.loads().iter().any(|l| l.0 == *result)
    });
    (!whole || read || !stage.is_fixed())
        .then(|| "its maker does not write it cell by cell, as it lies".into())
}

/// The same for what reads it.
fn reader_refusal(functions: &Functions<'_>, readers: &[(&Binding, usize)]) -> Option<String> {
    if readers.is_empty() {
        return Some("nothing reads it".into());
    }
    for (b, k) in readers {
        let Some((f, _)) = called(functions, b) else { return Some("its memory is shared".into()) };
        let param = f.buffers().nth(*k);
        let plain = param.is_some_and(|p| {
            p.strides.is_empty()
                && p.axis_separators.is_empty()
                && !accessed(&f.body).1.iter().any(|w| w.data == p.data)
        });
        if !plain || open_stages(f).is_none() {
            return Some(format!("`{}`, which reads it, is no stages", b.var.name()));
        }
    }
    None
}

/// A binding whose call takes and gives what was chosen in textures.
fn placed(
    functions: &mut Functions<'_>,
    b: &Binding,
    chosen: &HashMap<u64, Placed>,
) -> Result<Binding> {
    let GraphExpr::CallTir { func: name, args, outs, scalars } = &b.value else {
        return Ok(b.clone());
    };
    let Some(f) = functions.get(name).cloned() else { return Ok(b.clone()) };
    let of_args = args.iter().map(|a| var(a).and_then(|v| chosen.get(&v.id())));
    let places: Vec<Option<&Placed>> = of_args.chain([chosen.get(&b.var.id())]).collect();
    if places.iter().all(Option::is_none) {
        return Ok(b.clone());
    }
    let mut subst = Subst::default();
    for (old, place) in f.buffers().zip(places) {
        let Some(Placed { scope, separator }) = place else { continue };
        let new = old.derive_storage(|d| {
            d.scope = scope.clone();
            d.axis_separators = vec![*separator];
        });
        subst.vars.insert(old.data.clone(), Expr::var(&new.data));
        subst.buffers.insert(old.clone(), new);
    }
    let func = functions.add(fold_func(&mut subst, &f), name);
    let (args, outs, scalars) = (args.clone(), outs.clone(), scalars.clone());
    Ok(Binding { value: GraphExpr::CallTir { func, args, outs, scalars }, ..b.clone() })
}
