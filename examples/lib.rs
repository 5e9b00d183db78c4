//! Programs that show what `messaging` does: one folder or file each, run with `cargo run --example <name>`.
