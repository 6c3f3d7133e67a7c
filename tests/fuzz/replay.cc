// Runs a fuzz target over the files of a corpus directory, without libFuzzer, so that every build replays
// them as a test. Each file is run twice: a target must not keep state from one input to the next.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::vector<std::filesystem::path> corpus_files(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> files;
  if (!std::filesystem::exists(directory)) return files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void run(const std::string& input) {
  for (int round = 0; round < 2; ++round) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    return 2;
  }
  run("");
  const std::vector<std::filesystem::path> files = corpus_files(argv[1]);
  if (files.empty()) {
    std::fprintf(stderr, "%s: no inputs; a corpus that is not there proves nothing\n", argv[1]);
    return 1;
  }
  for (const std::filesystem::path& file : files) {
    std::printf("%s\n", file.c_str());
    std::fflush(stdout);  // the last name printed is the input that failed
    run(sluice::read_text_file(file.string(), 64 * sluice::kMiB));
  }
  std::printf("%zu inputs and the empty one\n", files.size());
  return 0;
}
