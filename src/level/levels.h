// SPDX-License-Identifier: MIT OR Apache-2.0
// A hierarchy of levels. Its composition root names them, nearest first, in one sentence:
//
//   blocks (heap/levels/block_levels.h)   Levels<ProcessorLevel, NodeLevel, SlabLevel>, above the slots of the core level
//   ranges (lab/heap.h)            Levels<CoreLevel, ProcessorLevel, NodeLevel, SourceLevel>, above the buffers of threads
//
// What moves between them is the payload: a magazine of blocks, which come back, or a range of addresses, which does not. The
// protocol is the same: a request goes to the nearest level, then to the next one up; so does what comes back. A level may get
// what it hands out from those above it, by the same request.
//
// A level has
//   Payload take(const Locality&, Request&)     none: the next level is asked; the request may have been made more precise
//   bool give(const Locality&, Payload&)        false: the next level gets what is left; only where payloads come back
#pragma once

#include "level/locality.h"

#include <cstddef>
#include <tuple>
#include <utility>

namespace terrace::level {

/// False: the level does not exist.
template <class P>
concept Payload = requires(const P& payload) {
  static_cast<bool>(payload);
};

template <class L, class P, class Request>
concept Hands = Payload<P> && requires(L& level, const Locality& here, Request& r) {
  { level.take(here, r) } -> std::same_as<P>;
};
template <class L, class P>
concept Accepts = Payload<P> && requires(L& level, const Locality& here, P& payload) {
  { level.give(here, payload) } -> std::same_as<bool>;
};

template <class... L>
class Levels {
 public:
  /// They live as long as this does.
  constexpr explicit Levels(L&... levels) noexcept : levels_(levels...) {}

  /// From the first that hands out something, beginning with level number `first`; none when none does.
  template <Payload P, class Request>
  P take(const Locality& here, Request& request, std::size_t first = 0) const noexcept {
    static_assert((Hands<L, P, Request> && ...));
    P got{};
    visit([&](std::size_t nth, auto& level) {
      if (nth >= first) got = level.take(here, request);
      return static_cast<bool>(got);
    });
    return got;
  }
  /// To the first that accepts it. The last one accepts everything.
  template <Payload P>
  void give(const Locality& here, P payload) const noexcept {
    static_assert((Accepts<L, P> && ...));
    visit([&](std::size_t, auto& level) { return level.give(here, payload); });
  }

 private:
  // Until one says true.
  template <class Body>
  void visit(Body body) const noexcept {
    std::size_t nth = 0;
    std::apply([&](auto&... level) { (void)(body(nth++, level) || ...); }, levels_);
  }

  std::tuple<L&...> levels_;
};

}  // namespace terrace::level
