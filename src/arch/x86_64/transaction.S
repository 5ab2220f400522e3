// SPDX-License-Identifier: MIT OR Apache-2.0
//
// [sequence 6] of arch/sequences.h: conditional store and compare-and-exchange inside an open transaction.
//
// An open transaction is rseq_cs == &terrace_transaction. That descriptor names ONE protected block, [.Lstart, .Lend). A
// thread that the kernel disturbs outside of the block finds rseq_cs cleared; one that it disturbs inside continues at
// .Labort. So from begin() to the commit store no disturbance goes unnoticed.
//
// The end of a protected block must stand directly after its commit store, and a block has one end. The 64-bit operations
// share the store before .Lend. The 32-bit operations cannot: after their store they are still inside, and .Labort must
// find out whether the store had happened. They commit by a cmpxchg without lock prefix (one instruction, so an interrupt
// comes before or after it), which stores and sets ZF together: r8d == .Larmed and ZF say that it was done. ZF is cleared
// before r8d is armed, and r8d is cleared at the entry points, outside of the block.
//
// rdi: offset of rseq_cs from the thread pointer. rsi: address. edx/rdx: expected, or the value of a store. ecx/rcx: value.

#if defined(TERRACE_INJECT)
#define DELAY(which)                             \
        movl terrace_delays+4*which(%rip), %r10d; \
        testl %r10d, %r10d;                       \
        jz 7f;                                    \
6:      decl %r10d;                               \
        jnz 6b;                                   \
7:
#else
#define DELAY(which)
#endif

// The mutant does not look whether the transaction is still open.
#if defined(TERRACE_MUTANT_MISSING_CHECK)
#define IF_OPEN
#else
#define IF_OPEN                                  \
        leaq terrace_transaction(%rip), %r9;     \
        cmpq %fs:(%rdi), %r9;                    \
        jne .Linvalid;
#endif

        .set .Larmed, 0x7e44ace

        .text
#define ENTRY(name, body)                        \
        .globl name;                             \
        .hidden name;                            \
        .type name, @function;                   \
        .balign 16;                              \
name:   xorl %r8d, %r8d;                         \
        jmp body;                                \
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
        movl %edx, %ecx
.Lagain32:
        movl (%rsi), %eax
        testq %rsp, %rsp
        movl $.Larmed, %r8d
        cmpxchgl %ecx, (%rsi)
        jne .Lagain32
        xorl %eax, %eax
        ret

.Lcas32:
        IF_OPEN
        DELAY(0)
        movl %edx, %eax
        testq %rsp, %rsp
        movl $.Larmed, %r8d
        cmpxchgl %ecx, (%rsi)
        jne .Lmismatch
        xorl %eax, %eax
        ret

.Lcas64:
        IF_OPEN
        DELAY(0)
        cmpq (%rsi), %rdx
        jne .Lmismatch
        movq %rcx, %rdx
        jmp .Lcommit64
.Lstore64:
        IF_OPEN
        DELAY(0)
.Lcommit64:
#if defined(TERRACE_MUTANT_WRONG_LENGTH)
.Lend:
        DELAY(1)
        movq %rdx, (%rsi)
#else
        DELAY(1)
        movq %rdx, (%rsi)
.Lend:
#endif
        xorl %eax, %eax
        ret
.Lmismatch:
        movl $2, %eax
        ret

        .byte 0x0f, 0xb9, 0x3d
        .long 0x53053053
.Labort:
        jnz .Labort_count
        cmpl $.Larmed, %r8d
        jne .Labort_count
        xorl %eax, %eax
        ret
.Labort_count:
        lock incq terrace_abort_counts(%rip)
.Linvalid:
        movl $1, %eax
        ret

        .section __rseq_cs, "aw"
        .balign 32
        .globl terrace_transaction
        .hidden terrace_transaction
        .type terrace_transaction, @object
terrace_transaction:
        .long 0, 0
        .quad .Lstart, .Lend - .Lstart, .Labort
        .size terrace_transaction, 32

        .section .note.GNU-stack, "", @progbits
