// SPDX-License-Identifier: MIT OR Apache-2.0
// How the library tells a debugger where its fields lie: one constant object with addresses in it, so that it lies in the data
// of a process and of its core file, where a reader finds it by its magic, in programs without symbols or without a file, too.
// The reader compares the version, then goes by names. The version rises when the meaning of a name changes, not when one is
// added. introspect/descriptors.h has the heap's, umem/descriptors.h that of object caches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>
#include <utility>

namespace terrace::describe {

/// Where something is in the process.
struct Address {
  char name[24];
  const void* at;
};

/// A field of a structure: `count` elements of `size` bytes. With size 0 a constant, whose value is `offset`.
struct Field {
  char name[28];
  std::uint32_t offset, size, count;
};

template <unsigned address_total, unsigned field_total>
struct Descriptor {
  char magic[16];
  std::uint32_t version;
  std::uint32_t header_bytes, address_bytes, address_count, field_bytes, field_count;
  Address addresses[address_total];  // at header_bytes
  Field fields[field_total];         // behind them
};

template <std::size_t n>
constexpr void set_name(char (&into)[n], std::string_view name) {
  for (std::size_t i = 0; i < name.size(); ++i) into[i] = name[i];  // too long: no constant expression
  into[name.size()] = 0;
}

constexpr Address address(std::string_view name, const void* at) {
  Address a{};
  set_name(a.name, name);
  a.at = at;
  return a;
}

constexpr Field constant(std::string_view name, std::size_t value) {
  Field f{};
  set_name(f.name, name);
  f.offset = static_cast<std::uint32_t>(value);
  return f;
}

template <class Member>
constexpr Field field(std::string_view name, std::size_t offset) {
  using Element = std::remove_all_extents_t<Member>;
  Field f = constant(name, offset);
  f.size = sizeof(Element);
  f.count = sizeof(Member) / sizeof(Element);
  return f;
}

constexpr Field piece(std::string_view name, std::size_t offset, std::size_t size, std::size_t count) {
  Field f = constant(name, offset);
  f.size = static_cast<std::uint32_t>(size);
  f.count = static_cast<std::uint32_t>(count);
  return f;
}

template <class T>
constexpr Field whole(std::string_view name) {
  return field<T>(name, 0);
}

/// All but the names.
template <class D>
constexpr D begun(std::string_view magic, unsigned version) {
  D d{};
  set_name(d.magic, magic);
  d.version = version;
  d.header_bytes = offsetof(D, addresses);
  d.address_bytes = sizeof(Address);
  d.address_count = std::size(d.addresses);
  d.field_bytes = sizeof(Field);
  d.field_count = std::size(d.fields);
  return d;
}

}  // namespace terrace::describe

// A member and what it is; `Type` begins where the reader begins to count.
#define TERRACE_FIELD(name, Type, member) \
  field<std::remove_reference_t<decltype((std::declval<Type&>().member))>>(name, offsetof(Type, member))

// Who links the static archive with --gc-sections is to keep it, although nothing refers to it.
#if defined(__has_attribute) && __has_attribute(retain)
#define TERRACE_RETAINED used, retain
#else
#define TERRACE_RETAINED used
#endif
