#include "tokenizer/store_tokenizer.h"

#include <fmt/format.h>

#include <optional>

#include "base/error.h"
#include "store/sidecar/sidecar.h"
#include "tokenizer/compiled_tokenizer.h"
#include "tokenizer/gguf_tokenizer.h"

namespace sluice::tokenizer {
namespace {

constexpr std::string_view kSidecar = "tokenizer";

std::unique_ptr<Tokenizer> load_files_of(const store::Checkpoint& checkpoint, const StopRequest& stop = {}) {
  checkpoint.check_files();
  stop_if(stop);
  if (const auto header = checkpoint.gguf()) return load_gguf_tokenizer(*header, checkpoint.path(), 0, stop);
  return load_tokenizer(checkpoint.files_directory(), stop);
}

}  // namespace

std::unique_ptr<Tokenizer> load_tokenizer_of(const store::Checkpoint& checkpoint, std::string* warning) {
  if (!checkpoint.packed()) return load_files_of(checkpoint);
  std::optional<Error> unusable;
  try {
    if (const auto tables = store::read_tables(checkpoint.path(), kSidecar, kTokenizerTables))
      return load_compiled_tokenizer(*tables);
  } catch (const Error& error) {
    unusable = error;
  }
  std::unique_ptr<Tokenizer> tokenizer = load_files_of(checkpoint);
  if (unusable && tokenizer == nullptr) throw Error(*unusable);
  if (unusable && warning != nullptr) {
    if (unusable->kind() != ErrorKind::kIo) unusable->fix("remove it: the model's files say the same");
    *warning = fmt::format("the tokenizer is read from the model's files: {}", unusable->what());
  }
  return tokenizer;
}

bool compile_tokenizer_of(const store::Checkpoint& checkpoint, const StopRequest& stop) {
  SLUICE_CHECK(checkpoint.packed(), checkpoint.path());
  const std::unique_ptr<Tokenizer> tokenizer = load_files_of(checkpoint, stop);
  if (tokenizer == nullptr) return false;
  stop_if(stop);
  std::string description;
  store::write_tables(checkpoint.path(), kSidecar, kTokenizerTables,
                      written_tables(tokenizer->compile(), description));
  return true;
}

}  // namespace sluice::tokenizer
