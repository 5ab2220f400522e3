// SPDX-License-Identifier: MIT OR Apache-2.0
// What the programs of bench/lab understand: KEY=VALUE..., and what all of them print.
//
//   young=512M threads=8 pause_us=200 seed=1     the space and who uses it
//   tlab= clab= plab= nlab=SIZE                  levels; none, or nothing said: there is no such level
//         growing | doubling                     the policy instead, from 64 KiB or 2 KiB on
//   sync=cas | cs                                the core level's
//   by=thread | core | flip                      the association
//   stop=PERMILLE                                no buffers near the end of the space
//   whole=1                                      no shorter buffers than those of the level's size, not even at the end of the
//   space block_us=N                                   the source sleeps that long before it hands out something
#pragma once

#include "../common/line.h"
#include "../common/options.h"
#include "terrace/lab_emit.h"
#include "young.h"

#include <string>
#include <string_view>

namespace lab_bench {

class Options : public bench::Options {
 public:
  using bench::Options::Options;

  Young::Options young(std::size_t bytes) const {
    Young::Options o;
    o.bytes = number("young", bytes);
    o.pause = std::chrono::microseconds(number("pause_us", 0));
    o.walk = number("walk", 0) != 0;
    o.block = std::chrono::microseconds(number("block_us", 0));
    return o;
  }

  terrace_lab_config config() const {
    terrace_lab_config c{};
    c.abi = TERRACE_LAB_ABI;
    c.alignment = 8;
    static constexpr const char* names[TERRACE_LAB_LEVELS] = {"tlab", "clab", "plab", "nlab"};
    for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) {
      c.levels[l] = level(text(names[l], "none"));
      if (number("whole", 0) != 0) c.levels[l].min_size = c.levels[l].size;
    }
    c.levels[TERRACE_LAB_CORE].sync = std::string_view(text("sync", "cas")) == "cs" ? TERRACE_LAB_RESTARTABLE : TERRACE_LAB_CAS;
    const std::string_view by = text("by", "thread");
    c.association = by == "flip" ? TERRACE_LAB_FLIP : by == "core" ? TERRACE_LAB_BY_CORE : TERRACE_LAB_BY_THREAD;
    c.stop_permille = static_cast<unsigned>(number("stop", 0));
    return c;
  }

 private:
  static terrace_lab_level_config level(const char* value) {
    constexpr std::size_t kib = 1024;
    terrace_lab_level_config l{};
    const std::string_view text = value;
    if (text == "none") return l;
    if (text == "growing") {
      l.size = 64 * kib;  // at most 64 times as much
      l.min_size = 2 * kib;
      l.sizing = TERRACE_LAB_GROWING;
    } else if (text == "doubling") {
      l.size = 2 * kib;
      l.min_size = kib / 2;
      l.max_size = 64 * kib;
      l.sizing = TERRACE_LAB_DOUBLING;
    } else {
      l.size = number(value);
    }
    return l;
  }
};

/// One line of JSON: the numbers given, then everything that was counted.
class Line : public bench::Line {
 public:
  using bench::Line::add;
  Line& add(const Young& young) {
    terrace_lab_counters c;
    terrace_lab_read_counters(young.heap(), &c);
    add("collections", static_cast<double>(young.collections()));
    add("collection_seconds", std::chrono::duration<double>(young.time_in_collections()).count());
    add("direct", static_cast<double>(c.direct));
    add("direct_bytes", static_cast<double>(c.direct_bytes));
    add("flips", static_cast<double>(c.flips));
    add("collections_by_core", static_cast<double>(c.by_core));
    static constexpr const char* names[TERRACE_LAB_LEVELS] = {"thread", "core", "processor", "node"};
    for (int l = 0; l < TERRACE_LAB_LEVELS; ++l) add(young.heap(), names[l], l, c.level[l]);
    return *this;
  }

 private:
  void add(const terrace_lab_heap* heap, const std::string& level, int l, const terrace_lab_counts& c) {
    terrace_lab_layout layout{};
    const bool shared = l != TERRACE_LAB_THREAD && terrace_lab_read_layout(heap, l, &layout) == 0;
    const std::pair<const char*, std::uint64_t> all[] = {{"buffers", shared ? layout.count : 0},
                                                         {"labs", c.labs},
                                                         {"lab_bytes", c.lab_bytes},
                                                         {"short_labs", c.short_labs},
                                                         {"foreign", c.foreign},
                                                         {"busy", c.busy},
                                                         {"neighbours", c.neighbours},
                                                         {"transactions", c.transactions},
                                                         {"failed", c.failed},
                                                         {"invalid", c.invalid},
                                                         {"sidelined", c.sidelined},
                                                         {"sidelined_bytes", c.sidelined_bytes},
                                                         {"unused_sidelined", c.unused_sidelined},
                                                         {"unused_sidelined_bytes", c.unused_sidelined_bytes},
                                                         {"partial", c.partial},
                                                         {"wasted_bytes", c.wasted_bytes},
                                                         {"retired_bytes", c.retired_bytes}};
    for (const auto& [name, value] : all) add((level + "." + name).c_str(), static_cast<double>(value));
  }
};

/// Sizes as javac's objects have them: mostly 16 to 128 bytes, one in fifty an array of up to 2 KiB. The same for everybody.
class Sizes {
 public:
  explicit Sizes(std::uint32_t seed) : at_(seed * 977 % count) {
    std::uint32_t state = 12345;
    for (std::uint16_t& size : sizes_) {
      const auto below = [&state](std::uint32_t n) { return (state = state * 1664525U + 1013904223U) / 65536U % n; };
      const bool array = below(50) == 0;
      size = static_cast<std::uint16_t>(8 * (array ? 16 + below(241) : 2 + below(below(15) + 1)));
    }
  }
  std::size_t next() { return sizes_[at_++ % count]; }

 private:
  static constexpr std::uint32_t count = 4096;
  std::uint16_t sizes_[count];
  std::uint32_t at_;
};

}  // namespace lab_bench
