//! Layers: a module uses its own layer and those below, never one above.
#![allow(clippy::unwrap_used)]

use std::path::Path;

/// From the bottom to the top.
const LAYERS: [&[&str]; 6] = [
    &["message", "headers", "text", "wire_names", "capabilities", "error", "duration", "violation"],
    &["settlement", "retry", "failure", "guard"],
    &["driver", "delivery", "codec"],
    &["consumer", "scope", "app"],
    &["dispatch", "broker"],
    &["plugin", "boot", "options"],
];

fn layer(module: &str) -> usize {
    let found = LAYERS.iter().position(|layer| layer.contains(&module));
    found.unwrap_or_else(|| panic!("module `{module}` has no layer: put it into LAYERS"))
}

/// The modules that a file names after `crate::`.
fn used(source: &str) -> Vec<String> {
    let names = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    let names = names.flat_map(|line| line.split("crate::").skip(1));
    let names =
        names.map(|rest| rest.split(|character: char| !(character.is_alphanumeric() || character == '_')).next());
    names.flatten().filter(|name| name.starts_with(char::is_lowercase)).map(str::to_owned).collect()
}

fn visit(folder: &Path, module: Option<&str>, checked: &mut usize) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            if name != "docs" {
                visit(&path, Some(module.unwrap_or(&name)), checked);
            }
        } else if name != "lib" {
            let module = module.unwrap_or(&name);
            for other in used(&std::fs::read_to_string(&path).unwrap()) {
                assert!(
                    layer(&other) <= layer(module),
                    "{} uses `{other}`, which is in a layer above `{module}`",
                    path.display()
                );
                *checked += 1;
            }
        }
    }
}

#[test]
fn no_module_uses_a_layer_above_its_own() {
    let mut checked = 0;
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), None, &mut checked);
    assert!(checked > 100, "only {checked} uses were found");
}
