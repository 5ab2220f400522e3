// SPDX-License-Identifier: MIT OR Apache-2.0
// What C++ programs do: maps of strings, by operator new and sized delete. Entries are inserted under random words, looked up,
// lengthened and erased.
//
//   entries=20000   per thread   words=40000   there are
#include "common/program.h"
#include "workloads.h"

#include <functional>
#include <map>
#include <string>
#include <utility>

namespace bench {
namespace {

/// For the standard containers: through a client.
template <typename T, typename Client>
class Through {
 public:
  using value_type = T;

  explicit Through(Client& client) : client_(&client) {}
  template <typename U>
  Through(const Through<U, Client>& other) : client_(other.client()) {}

  T* allocate(std::size_t n) { return static_cast<T*>(client_->take_new(n * sizeof(T))); }
  void deallocate(T* p, std::size_t n) { client_->give_new(p, n * sizeof(T)); }

  Client* client() const { return client_; }
  template <typename U>
  bool operator==(const Through<U, Client>& other) const {
    return client_ == other.client();
  }

 private:
  Client* client_;
};

template <typename Client>
using Text = std::basic_string<char, std::char_traits<char>, Through<char, Client>>;

template <typename Client>
using Map =
    std::map<Text<Client>, Text<Client>, std::less<Text<Client>>, Through<std::pair<const Text<Client>, Text<Client>>, Client>>;

class Strings : public Program {
  static constexpr std::size_t longest = 512;
  const std::size_t entries_ = number("entries", 20'000);
  const std::size_t words_ = number("words", 40'000);
  const std::size_t steps_ = run_.scaled(700'000);

 public:
  using Program::Program;

  template <typename Client>
  void work(Client& client, unsigned slot) {
    Random random = run_.random(slot);
    const Through<char, Client> through(client);
    Map<Client> map(through);
    for (std::size_t step = 0; step < steps_; ++step) {
      const Text<Client> key = word(random.below(words_), through);
      const auto found = map.find(key);
      if (found == map.end()) {
        if (map.size() < entries_) map.emplace(key, key);
      } else if (random.below(4) != 0) {
        found->second += key;
        if (found->second.size() > longest) found->second = key;
      } else {
        check<Client>(found->first, found->second);
        map.erase(found);
      }
    }
    for (const auto& [key, value] : map) check<Client>(key, value);
  }

 private:
  // Words of 8 to 47 letters, so that most of them do not fit into the string itself.
  template <typename Client>
  static Text<Client> word(std::size_t number, const Through<char, Client>& through) {
    std::uint64_t letters = Random::mix(number + 1);
    Text<Client> text(8 + letters % 40, 'a', through);
    for (char& c : text) {
      c = static_cast<char>('a' + letters % 26);
      letters = letters / 26 + (letters << 59);
    }
    return text;
  }

  // A value is its key a number of times.
  template <typename Client>
  static void check(const Text<Client>& key, const Text<Client>& value) {
    if constexpr (Client::checks) {
      bool same = value.size() % key.size() == 0;
      for (std::size_t i = 0; same && i < value.size(); ++i) same = value[i] == key[i % key.size()];
      if (!same) broken("a string has changed");
    }
  }
};

constexpr Workload all[] = {{"strings", run<Strings>}};

}  // namespace

const std::span<const Workload> strings = all;

}  // namespace bench
