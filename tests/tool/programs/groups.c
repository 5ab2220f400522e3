// SPDX-License-Identifier: MIT OR Apache-2.0
// Leaks 8 MiB and more in each of eight functions: groups [abort]
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUP(name, bytes, mib)                                                                      \
  __attribute__((noinline)) static void name(void) {                                                 \
    for (long done = 0; done < (mib)*1024L * 1024; done += (bytes)) memset(malloc(bytes), 1, bytes); \
  }
GROUP(lose_24, 24, 8)
GROUP(lose_64, 64, 8)
GROUP(lose_100, 100, 8)
GROUP(lose_1000, 1000, 10)
GROUP(lose_5000, 5000, 12)
GROUP(lose_40000, 40000, 16)
GROUP(lose_200000, 200000, 16)
GROUP(lose_1048576, 1048576, 24)

int main(int argc, char** argv) {
  lose_24();
  lose_64();
  lose_100();
  lose_1000();
  lose_5000();
  lose_40000();
  lose_200000();
  lose_1048576();
  puts("ready");
  fflush(stdout);
  if (argc > 1 && strcmp(argv[1], "abort") == 0) abort();
  while (getchar() != EOF) {
  }
}
