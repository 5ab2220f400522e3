// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options that are part of the program.

#[no_mangle]
#[allow(non_upper_case_globals)]
static terrace_options: &[u8; 19] = b"TERRACE_BUDGET=64M\0";

#[test]
fn a_symbol_of_the_program_has_its_options() {
    if std::env::var_os("TERRACE_BUDGET").is_none() {
        assert_eq!(terrace::statistics().unwrap().budget, 64 << 20);
    }
}
