//! Every operator in the interpreter, against plain loops that say what it computes.

mod blocks;
mod canonical;
mod contraction;
mod creation;
mod dynamic;
mod einsum;
mod elementwise;
mod hostile;
mod movement;
mod nd;
mod norm;
mod pool;
mod quantize;
mod recurrent;
mod reduce;
mod resize;
mod sample;
mod te;
mod text;
mod trees;
