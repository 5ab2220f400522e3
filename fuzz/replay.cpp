// SPDX-License-Identifier: MIT OR Apache-2.0
// The main program of a fuzzer where there is no libFuzzer: every file of a corpus, then inputs made from them by a fixed
// sequence of random numbers. So every build of the tests runs what was found before.
//
//   replay CORPUS_DIRECTORY NUMBER_OF_MADE_UP_INPUTS
#include "bytes.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <vector>

namespace {

using Input = std::vector<std::uint8_t>;

Input contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

// One of the corpus with some bytes changed, and the end of another one.
Input made_up(const std::vector<Input>& corpus, std::mt19937& random) {
  Input input = corpus[random() % corpus.size()];
  const Input& other = corpus[random() % corpus.size()];
  if (!other.empty())
    input.insert(input.end(), other.begin() + static_cast<std::ptrdiff_t>(random() % other.size()), other.end());
  for (std::size_t i = random() % 16; i > 0 && !input.empty(); --i) {
    input[random() % input.size()] = static_cast<std::uint8_t>(random());
  }
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY NUMBER_OF_MADE_UP_INPUTS\n", argv[0]);
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Input> corpus;
  for (const auto& file : files) corpus.push_back(contents(file));
  if (corpus.empty()) {
    std::fprintf(stderr, "%s: no corpus\n", argv[1]);
    return 1;
  }
  for (const Input& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937 random(1);
  const long count = std::atol(argv[2]);
  for (long i = 0; i < count; ++i) {
    const Input input = made_up(corpus, random);
    LLVMFuzzerTestOneInput(input.data(), input.size());
  }
  std::printf("%zu inputs of the corpus, %ld made up: nothing wrong\n", corpus.size(), count);
  return 0;
}
