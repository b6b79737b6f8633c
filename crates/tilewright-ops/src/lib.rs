//! Operator library: tensor expressions that build tensor functions.
