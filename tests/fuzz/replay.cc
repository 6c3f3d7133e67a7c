// Runs a fuzz target over its corpus, without libFuzzer, so that every build replays it as a test: the
// lines of CORPUS.txt, which tools/fuzz_corpus.py writes, and the files of the directory CORPUS. Each input
// is run twice: a target must not keep state from one input to the next.
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/files/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

std::string unescaped(std::string_view text) {
  std::string bytes;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '\\') {
      bytes += text[at];
      continue;
    }
    const std::string_view escape = text.substr(at + 1, 3);
    std::uint8_t byte = 0;
    if (escape.starts_with('\\')) {
      bytes += '\\';
      at += 1;
    } else if (escape.starts_with('n')) {
      bytes += '\n';
      at += 1;
    } else if (escape.size() == 3 && escape[0] == 'x' &&
               std::from_chars(&escape[1], escape.data() + 3, byte, 16).ptr == escape.data() + 3) {
      bytes += static_cast<char>(byte);
      at += 3;
    } else {
      throw std::invalid_argument("\\" + std::string(escape) + ": expected \\\\, \\n or \\xHH");
    }
  }
  return bytes;
}

std::map<std::string, std::string> inputs_of_lines(std::string_view lines) {
  std::map<std::string, std::string> inputs;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const std::size_t space = line.find(' ');
    if (space == line.npos || line.size() == lines.size()) {
      throw std::invalid_argument(std::string(line) +
                                  ": expected a name, a space, an input and a line's end");
    }
    inputs[std::string(line.substr(0, space))] = unescaped(line.substr(space + 1));
    lines.remove_prefix(line.size() + 1);
  }
  return inputs;
}

std::map<std::string, std::string> corpus_inputs(const std::string& corpus) {
  std::map<std::string, std::string> inputs;
  if (std::filesystem::exists(corpus + ".txt")) {
    inputs = inputs_of_lines(sluice::read_text_file(corpus + ".txt", 64 * sluice::kMiB));
  }
  if (!std::filesystem::exists(corpus)) return inputs;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(corpus)) {
    if (!entry.is_regular_file()) continue;
    inputs[entry.path().string()] = sluice::read_text_file(entry.path().string(), 64 * sluice::kMiB);
  }
  return inputs;
}

void run(const std::string& input) {
  for (int round = 0; round < 2; ++round) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(input.data()), input.size());
  }
}

// Both programs that read lines must make the same bytes of these (tools/fuzz_corpus_test.py).
bool understands_escapes() {
  return unescaped("a\\\\n\\n\\x00\\xff\\x7f\xc3\xa4 ") == std::string("a\\n\n\0\xff\x7f\xc3\xa4 ", 10);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS\n", argv[0]);
    return 2;
  }
  if (!understands_escapes()) {
    std::fprintf(stderr, "the escapes of a corpus are read wrongly\n");
    return 1;
  }
  run("");
  const std::map<std::string, std::string> inputs = corpus_inputs(argv[1]);
  if (inputs.empty()) {
    std::fprintf(stderr, "%s: no inputs; a corpus that is not there proves nothing\n", argv[1]);
    return 1;
  }
  for (const auto& [name, input] : inputs) {
    std::printf("%s\n", name.c_str());
    std::fflush(stdout);  // the last name printed is the input that failed
    run(input);
  }
  std::printf("%zu inputs and the empty one\n", inputs.size());
  return 0;
}
