// SPDX-License-Identifier: MIT OR Apache-2.0
//
// [sequence 6], as in x86_64/transaction.S, where the idea is explained. The 64-bit operations share the store before .Lend. The
// 32-bit ones commit by stxr, which stores and sets its status register in one instruction: w8 == 0 says that it was done; before that it
// is 2, from the entry point on (outside of the block), or 1 after a store that failed. (An interrupt clears the exclusive monitor, so a store after one fails anyway.)
//
// x0: offset of rseq_cs from the thread pointer. x1: address. w2/x2: expected, or the value of a store. w3/x3: value.

#if defined(TERRACE_INJECT)
#define DELAY(which)                                        \
        adrp x16, terrace_delays;                           \
        add x16, x16, :lo12:terrace_delays;                 \
        ldr w16, [x16, 4*which];                            \
        cbz w16, 7f;                                        \
6:      sub w16, w16, 1;                                    \
        cbnz w16, 6b;                                       \
7:
#else
#define DELAY(which)
#endif

// The mutant does not look whether the transaction is still open.
#if defined(TERRACE_MUTANT_MISSING_CHECK)
#define IF_OPEN
#else
#define IF_OPEN                                             \
        ldr x9, [x10];                                      \
        cmp x9, x11;                                        \
        b.ne .Linvalid;
#endif

        .text
#define ENTRY(name, body)                                   \
        .globl name;                                        \
        .hidden name;                                       \
        .type name, %function;                              \
        .balign 16;                                         \
name:   mov w8, 2;                                          \
        mrs x10, tpidr_el0;                                 \
        add x10, x10, x0;                                   \
        adrp x11, terrace_transaction;                      \
        add x11, x11, :lo12:terrace_transaction;            \
        b body;                                             \
        .size name, . - name

        ENTRY(terrace_commit_store32, .Lstore32)
        ENTRY(terrace_commit_cas32, .Lcas32)
        ENTRY(terrace_commit_cas64, .Lcas64)
        ENTRY(terrace_commit_store64, .Lstore64)

        .balign 64
.Lstart:
.Lstore32:
        IF_OPEN
        DELAY(0)
.Lagain_store32:
        ldxr w9, [x1]
        stxr w8, w2, [x1]
        cbz w8, .Ldone32
        mov w8, 2
        b .Lagain_store32

.Lcas32:
        IF_OPEN
        DELAY(0)
.Lagain_cas32:
        ldxr w9, [x1]
        cmp w9, w2
        b.ne .Lmismatch
        stxr w8, w3, [x1]
        cbz w8, .Ldone32
        mov w8, 2
        b .Lagain_cas32
.Ldone32:
        mov w0, 0
        ret

.Lcas64:
        IF_OPEN
        DELAY(0)
        ldr x9, [x1]
        cmp x9, x2
        b.ne .Lmismatch
        mov x2, x3
        b .Lcommit64
.Lstore64:
        IF_OPEN
        DELAY(0)
.Lcommit64:
#if defined(TERRACE_MUTANT_WRONG_LENGTH)
.Lend:
        DELAY(1)
        str x2, [x1]
#else
        DELAY(1)
        str x2, [x1]
.Lend:
#endif
        mov w0, 0
        ret
.Lmismatch:
        clrex
        mov w0, 2
        ret

        .balign 4
        .inst 0xd428bc00
.Labort:
        cbz w8, .Ldone_after_all
        adrp x16, terrace_abort_counts
        add x16, x16, :lo12:terrace_abort_counts
1:      ldxr x17, [x16]
        add x17, x17, 1
        stxr w9, x17, [x16]
        cbnz w9, 1b
.Linvalid:
        mov w0, 1
        ret
.Ldone_after_all:
        mov w0, 0
        ret

        .section __rseq_cs, "aw"
        .balign 32
        .globl terrace_transaction
        .hidden terrace_transaction
        .type terrace_transaction, %object
terrace_transaction:
        .long 0, 0
        .quad .Lstart, .Lend - .Lstart, .Labort
        .size terrace_transaction, 32

        .section .note.GNU-stack, "", %progbits
