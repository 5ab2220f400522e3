// SPDX-License-Identifier: MIT OR Apache-2.0
// Blocks of a class that move together: the cap that a (slot, class) starts with, and its maximum.
#pragma once

#include "heap/classes/size_class.h"
#include "level/magazine.h"

namespace terrace::heap {

struct TransferRule {
  static constexpr std::size_t largest_load_bytes = 16 * kib;  // a magazine with more in it is not worth its memory,
  static constexpr unsigned batch_of_interest = 32;            // but programs work in batches of about this many,
  static constexpr std::size_t largest_batch_bytes = 2 * mib;  // as far as that is not too large
  static constexpr std::size_t first_load_bytes = 512;
  static constexpr unsigned first_cap_at_most = 8;
};

struct TransferSize {
  std::uint8_t smallest = 0, first = 0, most = 0;
};

constexpr TransferSize make_transfer_size(std::size_t size) {
  const std::size_t smallest = size > kib ? 1 : 2;
  const std::size_t by_bytes = TransferRule::largest_load_bytes / size;
  const std::size_t for_batches =
      min_of<std::size_t>(TransferRule::batch_of_interest, TransferRule::largest_batch_bytes / size);
  const std::size_t most = min_of<std::size_t>(max_of(max_of(by_bytes, for_batches), smallest), level::largest_magazine);
  const std::size_t first = max_of<std::size_t>(TransferRule::first_load_bytes / size, smallest);
  return {.smallest = static_cast<std::uint8_t>(smallest),
          .first = static_cast<std::uint8_t>(min_of<std::size_t>(first, TransferRule::first_cap_at_most)),
          .most = static_cast<std::uint8_t>(most)};
}

consteval std::array<TransferSize, max_size_classes> make_transfer_sizes() {
  std::array<TransferSize, max_size_classes> all{};
  for (std::size_t c = 1; c < class_count; ++c) all.at(c) = make_transfer_size(class_sizes.bytes.at(c));
  return all;
}
/// By size class.
inline constexpr std::array<TransferSize, max_size_classes> transfer_sizes = make_transfer_sizes();

const TransferSize& object_transfer_size(SizeClass c) noexcept __attribute__((pure, visibility("hidden")));
constexpr const TransferSize& transfer_size(SizeClass c) noexcept {
  return is_object(c) ? object_transfer_size(c) : transfer_sizes[index(c)];
}

/// A slab's smallest piece that is worth a call.
constexpr unsigned smallest_load(SizeClass c) noexcept { return transfer_size(c).smallest; }
constexpr unsigned first_cap(SizeClass c) noexcept { return transfer_size(c).first; }
constexpr unsigned max_cap(SizeClass c) noexcept { return transfer_size(c).most; }

}  // namespace terrace::heap
