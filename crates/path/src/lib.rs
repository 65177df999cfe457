//! Path.
