// No run takes memory that the budget does not know: whatever a model, its weights' form, the instruction
// set, the batch and the sampling are, what the heap holds beyond the plan stays small, however large the
// buffers of the computation are. malloc is counted, so libraries are, too.
#include <execinfo.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/scratch_directory.h"
#include "base/float16.h"
#include "base/json/json.h"
#include "base/machine/system_memory.h"
#include "base/machine/thread_pool.h"
#include "bundled_model.h"
#include "codec/exponents/plane_decoder.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/engine_plan.h"
#include "engine/plan/memory_plan.h"
#include "engine/plan/options.h"
#include "engine/run_report.h"
#include "model/architecture.h"
#include "model/golden_models.h"
#include "model/pack_plan.h"
#include "model/synth/synth.h"
#include "store/checkpoint.h"
#include "store/pack/pack.h"
#include "store/source/open_checkpoint.h"

namespace {

constexpr std::size_t kLarge = std::size_t{64} << 10;

// Counts the live bytes of some blocks (all, or those of kLarge and more), and the most since the last reset.
struct Count {
  std::atomic<std::ptrdiff_t> live{0}, most{0};
  void add(std::ptrdiff_t bytes) {
    const std::ptrdiff_t now = live.fetch_add(bytes) + bytes;
    std::ptrdiff_t before = most.load();
    while (now > before && !most.compare_exchange_weak(before, now)) {
    }
  }
  void reset() { most = live.load(); }
};
Count all, large;
std::atomic<bool> watching{false};
std::array<void*, 24> caller{};  // frames of the first large allocation while watching
std::atomic<int> caller_frames{0};

#ifndef SLUICE_SANITIZED
void count(void* memory, std::ptrdiff_t sign) {
  if (memory == nullptr) return;
  const auto bytes = static_cast<std::ptrdiff_t>(::malloc_usable_size(memory));
  all.add(sign * bytes);
  if (static_cast<std::size_t>(bytes) < kLarge) return;
  large.add(sign * bytes);
  if (sign > 0 && watching && caller_frames == 0) {
    caller_frames = 1;
    caller_frames = ::backtrace(caller.data(), static_cast<int>(caller.size()));
  }
}
#endif

}  // namespace

#ifndef SLUICE_SANITIZED
// In front of libc's, for the whole program and its libraries.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void __libc_free(void* memory);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) {
  void* const memory = __libc_malloc(bytes);
  count(memory, 1);
  return memory;
}
void free(void* memory) {
  count(memory, -1);
  __libc_free(memory);
}
void* calloc(std::size_t number, std::size_t bytes) {
  void* const memory = __libc_calloc(number, bytes);
  count(memory, 1);
  return memory;
}
void* realloc(void* memory, std::size_t bytes) {
  count(memory, -1);
  void* const moved = __libc_realloc(memory, bytes);
  count(moved != nullptr || bytes == 0 ? moved : memory, 1);
  return moved;
}
void* memalign(std::size_t alignment, std::size_t bytes) {
  void* const memory = __libc_memalign(alignment, bytes);
  count(memory, 1);
  return memory;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) { return memalign(alignment, bytes); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  *memory = memalign(alignment, bytes);
  return *memory == nullptr ? 12 : 0;
}
}
#endif

namespace sluice {
namespace {

namespace fs = std::filesystem;

// What a run may take of the heap beyond the plan: lists by sequence, by expert and by operation, and the
// tokens themselves.
constexpr std::ptrdiff_t kAllowed = 384 << 10;

// A golden model's config with matrices and a vocabulary so large that what grows with them is noticed.
std::string grown_config(const std::string& name) {
  Json config = read_json_file(sluice::testing::kGoldenModels + "/" + name + "/config.json");
  for (const char* field : {"hidden_size", "d_model"})
    if (config.contains(field)) config[field] = 4 * config[field].get<int>();
  for (const char* field : {"intermediate_size", "moe_intermediate_size", "d_ff"})
    if (config.contains(field)) config[field] = 3 * config[field].get<int>();
  config["vocab_size"] = 8009;
  config["torch_dtype"] = "bfloat16";
  return config.dump();
}

// The only shard of a directory, with its BF16 words as `dtype`: F32 or F16. Codes stay as they are.
void convert(const std::string& directory, const std::string& dtype) {
  for (const auto& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".safetensors") continue;
    const std::string bytes = program::content_of(entry.path());
    std::uint64_t header_bytes = 0;
    std::memcpy(&header_bytes, bytes.data(), 8);
    Json header = Json::parse(bytes.substr(8, header_bytes));
    std::string data;
    std::map<std::uint64_t, std::string> in_order;
    for (const auto& [name, tensor] : header.items())
      if (name != "__metadata__") in_order[tensor.at("data_offsets")[0].get<std::uint64_t>()] = name;
    for (const auto& [begin, name] : in_order) {
      const auto end = header[name]["data_offsets"][1].get<std::uint64_t>();
      const std::size_t first = data.size();
      if (header[name]["dtype"] != "BF16") {
        data.append(bytes, 8 + header_bytes + begin, end - begin);
        header[name]["data_offsets"] = {first, data.size()};
        continue;
      }
      for (std::uint64_t at = begin; at < end; at += 2) {
        std::uint16_t word;
        std::memcpy(&word, &bytes[8 + header_bytes + at], 2);
        const float value = bf16_to_float(word);
        const std::uint16_t half = double_to_fp16(value);
        data.append(
            dtype == "F32" ? reinterpret_cast<const char*>(&value) : reinterpret_cast<const char*>(&half),
            dtype == "F32" ? 4 : 2);
      }
      header[name]["dtype"] = dtype;
      header[name]["data_offsets"] = {first, data.size()};
    }
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');
    header_bytes = text.size();
    std::ofstream(entry.path(), std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&header_bytes), 8) << text << data;
  }
  for (const auto& entry : fs::directory_iterator(directory))
    if (entry.path().string().ends_with(".index.json")) fs::remove(entry.path());
}

struct Form {
  const char* name;
  const char* dtype;  // words of the directory
  const char* codec;  // codec of the store; null: the directory is run
  bool sliced = false, int8 = false;
};
constexpr Form kForms[] = {{"bf16", "BF16", nullptr},
                           {"f32", "F32", nullptr},
                           {"f16", "F16", nullptr},
                           {"native", "BF16", "native"},
                           {"zstd", "BF16", "zstd"},
                           {"slices", "BF16", "native", true},
                           {"slices_int8", "BF16", "native", true, true}};

std::string make_model(const std::string& golden, const Form& form, const std::string& directory) {
  const std::string config = directory + "/config.json", model = directory + "/model";
  std::ofstream(config) << grown_config(golden);
  ThreadPool threads(2);
  model::write_synth(model::plan_synth(config, {}), model, threads, [](Bytes) { return true; });
  if (std::string_view(form.dtype) != "BF16") convert(model, form.dtype);
  if (form.codec == nullptr) return model;
  store::PackOptions options;
  options.codec = form.codec;
  options.keep_columns = true;
  if (form.sliced) options.slices = codec::SliceBits{8, 4};
  if (form.int8) options.dense = store::DenseRounding::kInt8;
  const std::string path = directory + "/store.sluice";
  store::pack(model, path, model::pack_plan(*store::open_checkpoint(model)), options);
  return path;
}

std::vector<engine::GenerateRequest> requests_of(std::size_t sequences, std::size_t tokens, bool sampled) {
  std::vector<engine::GenerateRequest> requests(sequences);
  for (std::size_t i = 0; i < sequences; ++i) {
    for (std::size_t t = 0; t < tokens; ++t)
      requests[i].prompt.push_back(static_cast<tokenizer::TokenId>((i * 131 + t * 37) % 8000));
    requests[i].max_tokens = 2;
    requests[i].ignore_eos = true;
    requests[i].sampler.seed = i;
    if (sampled) {
      requests[i].sampler.temperature = 0.9;
      requests[i].sampler.top_p = 0.95;
      requests[i].sampler.repetition_penalty = 1.1;
    }
  }
  return requests;
}

class LargeAllocations : public ::testing::TestWithParam<std::string> {};

TEST_P(LargeAllocations, OfARunAreAllInThePlan) {
#ifdef SLUICE_SANITIZED
  GTEST_SKIP() << "sanitizers have a malloc of their own";
#endif
  engine::process_baseline();
  const std::vector<Isa> here = available_isas();
  std::set<std::string> absent;
  for (const Isa isa : {Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Vbmi2, Isa::kAvx512Bf16, Isa::kAmx})
    if (std::ranges::find(here, isa) == here.end()) absent.insert(std::string(isa_name(isa)));
  std::size_t combinations = 0, unsupported = 0;
  std::ptrdiff_t most_beyond = 0;
  for (const Form& form : kForms) {
    const testing::ScratchDirectory scratch;
    std::string path;
    try {
      path = make_model(GetParam(), form, scratch.path());
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::kUnsupported) << form.name << ": " << error.what();
      ++unsupported;
      continue;
    }
    for (std::size_t set = 0; set < here.size(); ++set) {
      // The scalar set computes one number after the other: less to do, and still far more than is allowed.
      const bool slow = here[set] == Isa::kScalar;
      for (const std::size_t sequences : {std::size_t{1}, slow ? std::size_t{8} : std::size_t{64}})
        for (const bool sampled : {false, true}) {
          // Drawing does not depend on products: one of the two by turns, both with the widest set.
          const bool turn = (set + static_cast<std::size_t>(&form - kForms)) % 2 == 1;
          if (sampled != turn && set + 1 < here.size()) continue;
          const Isa isa = here[set];
          SCOPED_TRACE(std::string(form.name) + ", " + std::string(isa_name(isa)) + ", batch of " +
                       std::to_string(sequences) + (sampled ? ", sampled" : ", greedy"));
          const auto checkpoint = store::open_checkpoint(path);
          const model::Model model = model::describe_model(*checkpoint);
          const std::vector<engine::GenerateRequest> requests = requests_of(sequences,
                                                                            sequences > 1 ? 1
                                                                            : slow        ? 20
                                                                                          : 100,
                                                                            sampled);
          engine::EngineOptions options;
          constexpr Bytes kBeside = 96 * kMiB;
          options.memory = engine::process_bytes(kBeside) + kBeside;
          options.threads = 2;
          options.isa = isa_name(isa);
          options.positions = 112;
          options.encoder_positions = 100;
          options.sequences = sequences;
          options.draws = sampled;
          if (form.sliced) options.precision = experts::PrecisionMode::kHigh;
          all.reset();
          large.reset();
          const std::ptrdiff_t before = all.live;
          engine::Engine engine(*checkpoint, model, engine::resolve(options, *checkpoint, model),
                                engine::generation_logit_rows(sequences));
          // Tables have what the heap had grown by when the plan was made, and no more is there now.
          EXPECT_LE(all.most - before, static_cast<std::ptrdiff_t>(engine.report().memory.tables) + kAllowed);
          all.reset();
          large.reset();
          const std::ptrdiff_t start = all.live, large_start = large.live;
          caller_frames = 0;
          watching = true;
          const auto results = engine::generate(engine, nullptr, requests);
          watching = false;
          EXPECT_EQ(results.size(), sequences);
          // Contexts of zstd come with the first chunk of a thread: `process` has room for them.
          const std::ptrdiff_t contexts = std::string_view(form.name) == "zstd" ? 3 * (100 << 10) : 0;
          EXPECT_LE(large.most - large_start, contexts) << "a block of 64 KiB or more beyond the plan";
          EXPECT_LE(all.most - start, kAllowed + contexts);
          most_beyond = std::max<std::ptrdiff_t>(most_beyond, all.most - start);
          if (caller_frames > 1 && HasFailure()) {
            ::backtrace_symbols_fd(caller.data(), caller_frames, STDERR_FILENO);
            return;
          }
          ++combinations;
        }
    }
  }
  std::cout << GetParam() << ": " << combinations << " combinations of form, instruction set, batch and "
            << "sampling; at most " << most_beyond << " bytes of the heap beyond the plan; " << unsupported
            << " forms that this architecture has not\n";
  for (const std::string& isa : absent)
    std::cout << "THIS MACHINE HAS NO " << isa << ": what it allocates is not seen here\n";
  EXPECT_GT(combinations, 0u);
}

// Each thread keeps what it has decoded in, and machines have many.
TEST(DecodingThreads, AreInTheAccountOfTheProcess) {
  const testing::ScratchDirectory scratch;
  const Form native{"native", "BF16", "native"};
  const auto checkpoint = store::open_checkpoint(make_model("qwen3_moe_a", native, scratch.path()));
  const model::Model model = model::describe_model(*checkpoint);
  const auto process = [&](unsigned threads) {
    engine::EngineOptions options;
    options.memory = Bytes{1} << 30;
    options.positions = 16;
    options.threads = threads;
    const engine::Engine engine(*checkpoint, model, engine::resolve(options, *checkpoint, model),
                                engine::generation_logit_rows(1));
    return engine.report().memory.process;
  };
  const Bytes kept = codec::kept_decoding_bytes("native", model.config.hidden);
  EXPECT_GE(kept, 24 * model.config.hidden);
  EXPECT_EQ(codec::kept_decoding_bytes("zstd", model.config.hidden), 0u);
  process(1);  // reads the pages of the program
  const Bytes one = process(1), many = process(129);
  EXPECT_GE(many, one + 128 * kept);
}

// A golden model of each architecture: the first by name.
std::vector<std::string> a_model_of_each() {
  std::map<std::string, std::string> by_type;
  for (const std::string& name : sluice::testing::golden_model_names()) {
    const fs::path config = fs::path(sluice::testing::kGoldenModels) / name / "config.json";
    by_type.try_emplace(read_json_file(config).at("model_type").get<std::string>(), name);
  }
  std::vector<std::string> names;
  for (const auto& [type, name] : by_type) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Architectures, LargeAllocations, ::testing::ValuesIn(a_model_of_each()),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace sluice
