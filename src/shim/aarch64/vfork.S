// SPDX-License-Identifier: MIT OR Apache-2.0
// As x86_64/vfork.S; the system call is clone(CLONE_VM | CLONE_VFORK | SIGCHLD, 0). The link register survives it, and nothing of
// ours is on the stack while the child runs.
        .text
        .globl vfork
        .type vfork, %function
        .balign 16
vfork:
        stp x29, x30, [sp, #-16]!
        bl terrace_enter_vfork
        ldp x29, x30, [sp], #16
        mov x9, x0                      // for terrace_leave_vfork: survives the system call, too
        mov x0, #0x4111                 // CLONE_VM | CLONE_VFORK | SIGCHLD
        cbz x1, 3f
        movk x0, #0x0120, lsl #16       // CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID
3:      mov x4, x1                      // where the child's tid is written
        mov x1, #0
        mov x8, #220                    // SYS_clone
        svc #0
        cbz x0, 1f                      // the child
        stp x30, x0, [sp, #-16]!
        mov x2, x0
        mov x0, x9
        mov x1, x4
        bl terrace_leave_vfork
        ldp x30, x0, [sp], #16
        cmn x0, #4095
        b.hs 2f
1:      ret
2:      neg w0, w0
        stp x30, x0, [sp, #-16]!
        bl __errno_location
        ldp x30, x1, [sp], #16
        str w1, [x0]
        mov w0, #-1
        ret
        .size vfork, . - vfork
        .globl __vfork
        .type __vfork, %function
        .set __vfork, vfork
        .section .note.GNU-stack, "", %progbits
