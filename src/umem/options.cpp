// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/options.h"

#include "base/bits.h"
#include "base/parse.h"
#include "base/text.h"

#include <initializer_list>
#include <string_view>

namespace terrace::umem {

constinit Options options;

namespace {

constexpr std::uint64_t largest_class = 128 * 1024;
constexpr std::uint64_t most_frames = 32;  // of what the unwinder is asked for

constexpr std::size_t longest_item = 512, shown_of_long = 40;
constexpr std::uint64_t usual_log = 64 * 1024;

struct Item {
  std::string_view name, value;
  bool has_value = false;
};

// Sizes have t as well.
bool parse_size(std::string_view text, std::uint64_t& out) noexcept {
  unsigned tera = 0;
  if (!text.empty() && (text.back() == 't' || text.back() == 'T')) {
    tera = 40;
    text.remove_suffix(1);
  }
  if (!parse_bytes(text, out) || out > (~std::uint64_t{0} >> tera)) return false;
  out <<= tera;
  return true;
}

enum class Result : std::uint8_t {
  ok,
  unknown,
  needs_size,
  needs_number,
  needs_none,
  too_many,
  too_long,
  no_such,
  too_large,
  too_many_frames,
  largest,
  no_meaning,
  own_buffers
};
constexpr const char* why(Result r) noexcept {
  switch (r) {
    case Result::unknown: return "is not known";
    case Result::needs_size: return "wants a size";
    case Result::needs_number: return "wants a number";
    case Result::needs_none: return "takes no value";
    case Result::too_many: return "comes too often";
    case Result::no_meaning: return "has no meaning on Linux, where memory is one range of addresses";
    case Result::no_such: return "is no such value";
    case Result::too_large: return "wants a size of at most 128k";
    case Result::too_many_frames: return "asks for more frames than the 32 that are kept";
    case Result::largest: return "can not be: the largest cache stays";
    case Result::own_buffers: return "has no meaning on Linux, where each core has its own buffers";
    case Result::too_long: return "is too long";
    case Result::ok: break;
  }
  return nullptr;
}

Result size_of(const Item& item, std::uint64_t& out) noexcept {
  return item.has_value && parse_size(item.value, out) ? Result::ok : Result::needs_size;
}
Result number_of(const Item& item, std::uint64_t& out) noexcept {
  return item.has_value && parse_number(item.value, out) ? Result::ok : Result::needs_number;
}
// Of items that are understood, and then do nothing.
Result without_meaning(Result understood, Result otherwise) noexcept {
  return understood == Result::ok ? otherwise : understood;
}
Result one_of(const Item& item, std::initializer_list<std::string_view> values) noexcept {
  for (const std::string_view v : values) {
    if (item.value == v) return Result::no_meaning;
  }
  return Result::no_such;
}
template <class Set>
Result flag(const Item& item, Set set) noexcept {
  if (item.has_value) return Result::needs_none;
  set();
  return Result::ok;
}

std::string_view trimmed(std::string_view text) noexcept {
  constexpr const char* blanks = " \t\n";
  text.remove_prefix(min_of(text.find_first_not_of(blanks), text.size()));
  text.remove_suffix(text.size() - (text.find_last_not_of(blanks) + 1));
  return text;
}
// Calls use(item) for each; it says what is wrong.
template <class Use>
void for_each_item(const char* variable, const char* text, Complain complain, Use use) noexcept {
  if (text == nullptr) return;
  for (Halves items{.before = {}, .behind = text, .found = true}; items.found;) {
    items = split(items.behind, ',');
    const std::string_view whole = trimmed(items.before);
    if (whole.empty()) continue;
    const Halves parts = split(whole, '=');
    if (whole.size() > longest_item) {
      if (complain != nullptr) complain(variable, whole.data(), shown_of_long, why(Result::too_long));
      continue;
    }
    const Item item{.name = trimmed(parts.before), .value = trimmed(parts.behind), .has_value = parts.found};
    const Result r = use(item);
    if (r != Result::ok && complain != nullptr) complain(variable, whole.data(), whole.size(), why(r));
  }
}

Result change_sizes(const Item& item, SizeChange::What what, Options& out) noexcept {
  std::uint64_t size = 0;
  if (what != SizeChange::What::clear) {
    if (const Result r = size_of(item, size); r != Result::ok) return r;
    if (size == 0 || size > largest_class) return Result::too_large;
    if (what == SizeChange::What::remove && size == largest_class) return Result::largest;
  } else if (item.has_value) {
    return Result::needs_none;
  }
  if (out.size_changes == out.sizes.size()) return Result::too_many;
  out.sizes[out.size_changes++] = {.what = what, .size = static_cast<std::uint32_t>(round_up(size, std::uint64_t{8}))};
  return Result::ok;
}

}  // namespace

void parse_options(const char* text, Options& out, Complain complain) noexcept {
  for_each_item("UMEM_OPTIONS", text, complain, [&](const Item& item) {
    std::uint64_t value = 0;
    if (item.name == "perthread_cache") {
      const Result r = size_of(item, value);
      if (r != Result::ok) return r;
      out.has_perthread_cache = true;
      out.perthread_cache = value;
      return r;
    }
    if (item.name == "nomagazines") return flag(item, [&] { out.no_magazines = true; });
    if (item.name == "reap_interval") return number_of(item, out.reap_interval_s);
    if (item.name == "size_add") return change_sizes(item, SizeChange::What::add, out);
    if (item.name == "size_remove") return change_sizes(item, SizeChange::What::remove, out);
    if (item.name == "size_clear") return change_sizes(item, SizeChange::What::clear, out);
    if (item.name == "backend") return one_of(item, {"sbrk", "mmap"});
    if (item.name == "allocator") return one_of(item, {"best", "first", "next", "instant"});
    for (const char* name : {"sbrk_minalloc", "sbrk_pagesize"}) {
      if (item.name == name) return without_meaning(size_of(item, value), Result::no_meaning);
    }
    for (const char* name : {"concurrency", "max_contention"}) {
      if (item.name == name) return without_meaning(number_of(item, value), Result::own_buffers);
    }
    return Result::unknown;
  });
}

void parse_debug(const char* text, Options& out, Complain complain) noexcept {
  for_each_item("UMEM_DEBUG", text, complain, [&](const Item& item) {
    std::uint64_t value = 0;
    const auto set = [&](unsigned flags) { return flag(item, [&] { out.debug |= flags; }); };
    if (item.name == "default") return set(debug_audit | debug_contents | debug_deadbeef | debug_redzone);
    if (item.name == "guards") return set(debug_deadbeef | debug_redzone);
    if (item.name == "checknull") return set(debug_checknull);
    if (item.name == "verbose") return flag(item, [&] { out.verbose = true; });
    if (item.name == "allverbose") return flag(item, [&] { out.verbose = out.tells_all = true; });
    if (item.name == "noabort") return flag(item, [&] { out.no_abort = true; });
    if (item.name == "audit") {
      if (item.has_value) {
        if (const Result r = number_of(item, value); r != Result::ok) return r;
        out.frames = static_cast<unsigned>(min_of(value, most_frames));
      }
      out.debug |= debug_audit | debug_redzone;
      return value > most_frames ? Result::too_many_frames : Result::ok;
    }
    if (item.name == "contents") {
      out.debug |= debug_contents;
      return item.has_value ? size_of(item, out.contents) : Result::ok;
    }
    if (item.name == "maxverify") return size_of(item, out.verify);
    if (item.name == "firewall") {
      const Result r = size_of(item, value);
      if (r != Result::ok || value == 0) return Result::needs_size;
      out.firewall = value;
      out.debug |= debug_firewall;
      return r;
    }
    if (item.name == "lite") return set(debug_lite | debug_deadbeef | debug_redzone);
    if (item.name == "nosignal") return set(debug_checksignal | debug_audit | debug_redzone);
    if (item.name == "random") return set(debug_randomize);
    if (item.name == "mtbf") {
      const Result r = number_of(item, value);
      if (r == Result::ok) out.mtbf = static_cast<std::uint32_t>(min_of<std::uint64_t>(value, 0xffffffff));
      return r;
    }
    return Result::unknown;
  });
  if ((out.debug & debug_lite) == 0) return;
  out.debug &= ~(debug_audit | debug_contents | debug_checksignal | debug_firewall);
  out.firewall = Options{}.firewall;
}

void parse_logging(const char* text, Options& out, Complain complain) noexcept {
  for_each_item("UMEM_LOGGING", text, complain, [&](const Item& item) {
    const auto log = [&](std::uint64_t& bytes) {
      std::uint64_t wanted = usual_log;
      const Result r = item.has_value ? size_of(item, wanted) : Result::ok;
      if (r == Result::ok) bytes = wanted;
      return r;
    };
    if (item.name == "transaction") return log(out.transaction_log);
    if (item.name == "contents") {
      out.debug |= debug_contents;
      return log(out.content_log);
    }
    if (item.name == "fail") return log(out.failure_log);
    if (item.name == "slab") return log(out.slab_log);
    return Result::unknown;
  });
}

}  // namespace terrace::umem
