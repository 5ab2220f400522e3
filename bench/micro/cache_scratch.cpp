// SPDX-License-Identifier: MIT OR Apache-2.0
// Passive false sharing, see false_sharing.h.
#include "false_sharing.h"

int main(int argc, char** argv) { return bench::run<bench::FalseSharing<true>>(argc, argv); }
