#include "setup/open_tokenizer.h"
#include "streams/standard_error.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <iterator>

#include "base/error.h"
#include "base/files/file.h"
#include "flags/model_argument.h"
#include "store/checkpoint.h"
#include "store/source/gguf.h"
#include "store/source/open_checkpoint.h"
#include "streams/standard_input.h"
#include "tokenizer/store_tokenizer.h"

namespace sluice::app {
namespace {

constexpr Bytes kMaxTextBytes = 256 * kMiB;

// A directory with a manifest is a packed store: its tokenizer files are where the store keeps the source's
// files.
bool is_store(const std::string& path) { return std::filesystem::exists(path + "/manifest.json"); }

}  // namespace

std::unique_ptr<tokenizer::Tokenizer> tokenizer_of(const store::Checkpoint& checkpoint,
                                                   const CommonFlags& flags) {
  std::string warning;
  auto tokenizer = tokenizer::load_tokenizer_of(checkpoint, &warning);
  if (!warning.empty() && !flags.quiet) write_warning(warning);
  return tokenizer;
}

std::unique_ptr<tokenizer::Tokenizer> open_tokenizer(const std::string& path, const CommonFlags& flags) {
  check_model_name(path);
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error(ErrorKind::kNotFound, "no such file or directory")
        .in(path)
        .expected("a model directory, a packed store, a GGUF file or a tokenizer.json")
        .found("nothing")
        .fix("check the name");
  }
  const bool brings_one = is_store(path) || store::looks_like_gguf(path);
  auto tokenizer =
      brings_one ? tokenizer_of(*store::open_checkpoint(path), flags) : tokenizer::load_tokenizer(path);
  if (tokenizer == nullptr) throw no_tokenizer(path);
  return tokenizer;
}

Error no_tokenizer(const std::string& path) {
  return Error(ErrorKind::kNotFound, "this model comes without a tokenizer")
      .in(path)
      .expected("tokenizer.json, vocab.json with merges.txt, or tokenizer.model")
      .found("none of them")
      .fix("download these files of the model, too");
}

std::string read_input_text(const std::string& path) {
  if (path != "-") return read_text_file(path, kMaxTextBytes);
  return {std::istreambuf_iterator<char>(standard_input()), std::istreambuf_iterator<char>()};
}

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace sluice::app
