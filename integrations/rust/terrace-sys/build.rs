// SPDX-License-Identifier: MIT OR Apache-2.0
//! Compiles the allocator: a unit per layer (a folder of `src/` with all below it), as CMake does, and one per file of `shim`,
//! which has the names: a program gets those that it refers to.
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Of these `shim` is taken apart, and the LAB engine stands beside malloc.
const NOT_WHOLE: [&str; 2] = ["shim", "lab"];
const NAMES: [&str; 4] = ["entry.cpp", "prefixed.cpp", "process.cpp", "umem/names.cpp"];
/// libc's names. The operators of C++ are not among them: the runtime's call malloc.
const LIBC_NAMES: [&str; 2] = ["malloc.cpp", "clone.cpp"];

fn main() {
    let target = |part: &str| env::var(format!("CARGO_CFG_TARGET_{part}")).unwrap_or_default();
    let (system, machine) = (target("OS"), target("ARCH"));
    assert!(
        system == "linux" && ["x86_64", "aarch64"].contains(&machine.as_str()),
        "Terrace runs on Linux on x86-64 and aarch64, not on {system} on {machine}"
    );
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let bundled = here.join("native");
    let root = if bundled.is_dir() { bundled } else { here.join("../../..") };
    let (src, include) = (root.join("src"), root.join("include"));
    println!("cargo:rerun-if-changed={}", src.display());
    println!("cargo:rerun-if-changed={}", include.display());
    println!("cargo:rerun-if-changed={}", here.join("src/statistics.cpp").display());
    println!("cargo:include={}", include.display());

    let has = |feature: &str| env::var_os(format!("CARGO_FEATURE_{feature}")).is_some();
    let mut build = compiler(&src, &include);
    if has("HARDENED") {
        build.define("TERRACE_HARDENED", "1");
    }
    if has("CHECK") {
        build.define("TERRACE_CHECK_DEFAULT", "\"1\"");
    }
    if has("OVERRIDE") {
        build.link_lib_modifier("+whole-archive");
    }
    build.file(here.join("src/statistics.cpp"));
    for folder in entries(&src).iter().filter(|f| f.is_dir() && !NOT_WHOLE.iter().any(|n| f.ends_with(n))) {
        add_layer(&mut build, &src, folder, &machine);
    }
    let libc_names = if has("OVERRIDE") { &LIBC_NAMES[..] } else { &[] };
    for name in NAMES.iter().chain(libc_names) {
        build.file(src.join("shim").join(name));
    }
    if has("OVERRIDE") {
        build.file(src.join("shim").join(&machine).join("vfork.S"));
    }
    build.compile("terrace");
}

/// As cmake/layers.cmake has it. Always optimised: what is debugged is the program.
fn compiler(src: &Path, include: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++20").cpp_link_stdlib(None).opt_level(2).pic(true).warnings(false);
    build.include(src).include(include);
    build.define("TERRACE_VERSION", format!("\"{}\"", env!("CARGO_PKG_VERSION")).as_str());
    for flag in ["-fvisibility=hidden", "-ftls-model=initial-exec", "-fno-exceptions", "-fno-rtti"] {
        build.flag(flag);
    }
    // Sections per datum would let the linker drop what debuggers look for (`terrace findleaks`).
    for flag in ["-fno-plt", "-fno-threadsafe-statics", "-fconstexpr-steps=100000000", "-fno-data-sections"] {
        build.flag_if_supported(flag);
    }
    for function in ["malloc", "calloc", "realloc", "free"] {
        build.flag(format!("-fno-builtin-{function}"));
    }
    // libumem's names are not taken from a libumem in the same process.
    let map = fs::read_to_string(src.join("shim/umem/umem.map")).expect("sources are bundled by `./terrace package crate`");
    for name in map.lines().filter_map(|line| line.trim().strip_suffix(';')).filter(|n| n.starts_with(['u', 'v'])) {
        build.define(name, format!("terrace_{name}").as_str());
    }
    build
}

/// One unit of all C++ of a layer, since most of a compiler's time goes into headers.
fn add_layer(build: &mut cc::Build, src: &Path, folder: &Path, machine: &str) {
    let mut unit = String::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let other = ["x86_64", "aarch64"].iter().any(|m| *m != machine && path.ends_with(m));
            match path.extension().and_then(|e| e.to_str()) {
                None if path.is_dir() && !other => folders.push(path),
                Some("S") => drop(build.file(path)),
                Some("cpp") => unit += &format!("#include \"{}\"\n", path.strip_prefix(src).unwrap().display()),
                _ => {}
            }
        }
    }
    if !unit.is_empty() {
        let out = PathBuf::from(env::var_os("OUT_DIR").unwrap());
        let file = out.join(folder.file_name().unwrap()).with_extension("cpp");
        fs::write(&file, unit).unwrap();
        build.file(file);
    }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let listed = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut paths: Vec<_> = listed.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}
