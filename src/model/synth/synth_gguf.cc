#include "model/synth/synth_gguf.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/float16.h"
#include "base/stop_request.h"
#include "codec/blocks/quantise.h"
#include "model/synth/synth_shard.h"
#include "model/synth/synth_target.h"

namespace sluice::model {
namespace {

namespace fs = std::filesystem;

std::uint64_t rows_of(const TensorSpec& spec) {
  std::uint64_t rows = 1;
  for (std::size_t i = 0; i + 1 < spec.shape.size(); ++i) rows *= spec.shape[i];
  return rows;
}

template <class Word>
void copy_words(const std::vector<Word>& words, std::byte* out) {
  std::ranges::copy(std::as_bytes(std::span(words)), out);
}

// A row of numbers as a type has it. BF16 words are the numbers themselves.
void put_row(const store::GgufType& type, const std::vector<std::uint16_t>& words, std::byte* out) {
  if (type.words == DType::kBF16) return copy_words(words, out);
  std::vector<float> numbers(words.size());
  std::ranges::transform(words, numbers.begin(), bf16_to_float);
  if (type.words == DType::kF32) return copy_words(numbers, out);
  if (!type.words) return codec::quantise_row(*type.format, numbers.data(), numbers.size(), out);
  std::vector<std::uint16_t> halves(words.size());
  std::ranges::transform(numbers, halves.begin(), double_to_fp16);
  copy_words(halves, out);
}

SynthTensor tensor_in(const store::GgufPlannedTensor& stored, const GgufTensorPlan& tensor,
                      const GgufSynthPlan& plan, std::span<const float> quantiles) {
  auto values = std::make_shared<std::vector<SynthValues>>();
  for (const TensorSpec* const spec : tensor.specs) {
    SynthValues::Options options;
    if (spec->role == Role::kEmbedding) options = {plan.embedding_scale, plan.embedding_common};
    values->emplace_back(SynthSpec{*spec}, plan.seed, quantiles, options);
  }
  const std::uint64_t each = rows_of(*tensor.specs[0]), rows = each * tensor.specs.size();
  return {
      rows, stored.length() / rows,
      [values, each, columns = stored.shape.back(), type = stored.type](std::uint64_t row, std::byte* out) {
        std::vector<std::uint16_t> words(columns);
        (*values)[row / each].fill_row(row % each, reinterpret_cast<std::byte*>(words.data()));
        put_row(*type, words, out);
      }};
}

SynthTensor zeros(Bytes bytes) {
  return {1, bytes, [bytes](std::uint64_t, std::byte* out) { std::memset(out, 0, bytes); }};
}

// A file that is removed unless it was published under its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& final_path)
      : final_path_(final_path), path_(fmt::format("{}.partial-{}", final_path, ::getpid())) {}
  ~TemporaryFile() {
    std::error_code ignored;
    if (!published_) fs::remove(path_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }
  void publish() {
    rename_no_replace(path_, final_path_);
    published_ = true;
    sync_directory(parent_of(final_path_));
  }

 private:
  std::string final_path_, path_;
  bool published_ = false;
};

}  // namespace

GgufSynthPlan plan_gguf_synth(const SynthPlan& plan, const GgufMix& mix, const GgufTokenizerKeys& tokenizer) {
  const GgufArchitecture* const architecture = gguf_architecture_of(plan.config);
  if (architecture == nullptr) {
    std::string known;
    for (const GgufArchitecture& one : gguf_architectures())
      known.append(known.empty() ? "one of " : ", ").append(one.model_type);
    throw Error(ErrorKind::kUnsupported, "this architecture is not written as a GGUF file")
        .in("model_type")
        .expected(known)
        .found(plan.config.model_type)
        .fix("leave the format out: the model becomes a directory");
  }
  if (const std::optional<Unsayable> other = what_no_file_says(plan.config))
    throw Error(ErrorKind::kUnsupported, "no GGUF file can say what the config says")
        .in(other->field)
        .expected(other->expected)
        .found(other->found)
        .fix("correct the config, or leave the format out: the model becomes a directory");
  GgufSynthPlan gguf;
  gguf.config = with_gate_apart(plan.config);
  gguf.seed = plan.seed;
  gguf.embedding_scale = plan.embedding_scale;
  gguf.embedding_common = plan.embedding_common;
  gguf.table = gguf_table(gguf.config);
  gguf.tensors = gguf_tensors(*architecture, gguf.config, gguf.table);
  gguf.file.keys = gguf_keys(*architecture, gguf.config);
  if (!tokenizer.empty()) {
    std::erase_if(gguf.file.keys, [](const auto& key) { return key.first == "tokenizer.ggml.model"; });
    gguf.file.keys.insert(gguf.file.keys.end(), tokenizer.begin(), tokenizer.end());
  }
  for (const GgufTensorPlan& tensor : gguf.tensors)
    gguf.file.tensors.push_back(
        {tensor.name, tensor.shape, &mix.of(*tensor.specs[0], gguf.config, tensor.shape.back())});
  gguf.layout = store::lay_out_gguf(gguf.file);
  return gguf;
}

void write_gguf_synth(const GgufSynthPlan& plan, const std::string& path, ThreadPool& threads,
                      const std::function<bool(Bytes)>& go_on) {
  check_target(path, round_up(plan.layout.file_bytes, kBlockBytes) + kBlockBytes);
  TemporaryFile temporary(path);
  const std::vector<float> quantiles = make_weight_quantiles();
  std::vector<SynthTensor> tensors;
  Bytes at = plan.layout.header.size();
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (const Bytes gap = plan.layout.offsets[i] - at; gap > 0) tensors.push_back(zeros(gap));
    tensors.push_back(tensor_in(plan.file.tensors[i], plan.tensors[i], plan, quantiles));
    at = plan.layout.offsets[i] + plan.file.tensors[i].length();
  }
  if (at < plan.layout.file_bytes) tensors.push_back(zeros(plan.layout.file_bytes - at));
  write_synth_shard(temporary.path(), plan.layout.header, tensors, threads, [&](Bytes done) {
    if (!go_on(done)) throw interrupted_error("nothing is left behind").in(path);
  });
  temporary.publish();
}

}  // namespace sluice::model
