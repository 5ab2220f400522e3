// SPDX-License-Identifier: MIT OR Apache-2.0
// A machine that a test describes and on which it chooses the cpu, in place of the one that it runs on (the linker's --wrap).
// For the rung getcpu, and one file of a program.
#pragma once

#include "topology/topology.h"

namespace machine {

inline constinit int here = 0;  // the cpu
/// By the test: what is read of the system.
void describe(terrace::topology::Topology& out) noexcept;

}  // namespace machine

namespace terrace::os {
int wrap_current_cpu() noexcept asm("__wrap__ZN7terrace2os11current_cpuEv");
int wrap_current_cpu() noexcept { return machine::here; }
}  // namespace terrace::os

namespace terrace::topology {
void wrap_read(Topology& out, const char* root) noexcept asm("__wrap__ZN7terrace8topology4readERNS0_8TopologyEPKc");
void wrap_read(Topology& out, const char* /*root*/) noexcept { machine::describe(out); }
}  // namespace terrace::topology
