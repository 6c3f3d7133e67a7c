#include "eval/identity.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/files/file.h"
#include "base/hash.h"
#include "engine/engine.h"
#include "engine/run_report.h"
#include "experts/registry.h"
#include "store/manifest.h"
#include "store/source/store_checkpoint.h"

namespace sluice::eval {
namespace {

std::string weights_of(const store::Checkpoint& checkpoint) {
  if (checkpoint.packed())
    return hex64(store::stated_checksum(store::read_manifest_text(checkpoint.path()), checkpoint.path()));
  std::string text;
  for (const std::string& file : checkpoint.weight_files()) {
    const std::filesystem::path path = file;
    text += fmt::format("{} {} {}\n", path.filename().string(), std::filesystem::file_size(path),
                        std::filesystem::last_write_time(path).time_since_epoch().count());
  }
  if (const auto config = checkpoint.find_file("config.json")) text += read_text_file(*config, kMiB);
  return hex64(xxh3(std::as_bytes(std::span(text.data(), text.size()))));
}

}  // namespace

Json identity_of(const engine::Engine& engine) {
  const auto activations = engine.report().plan.activations;
  const auto kv = engine.report().plan.kv;
  return {{"weights", weights_of(engine.report().checkpoint)},
          {"math", engine.report().plan.math == engine::Math::kF32 ? "f32" : "auto"},
          {"kv", kv ? std::string(dtype_name(*kv)) : "auto"},
          {"isa", std::string(isa_name(engine.report().isa))},
          {"router", engine.report().policies.router->name},
          {"precision", std::string(experts::precision_name(engine.report().policies.precision.mode))},
          {"low_view", engine.report().plan.low_view == codec::SliceView::kCenter ? "amat-center" : "amat"},
          {"activations", activations ? std::string(engine::activations_name(*activations)) : "fp32"}};
}

std::string sha256_of(std::span<const tokenizer::TokenId> tokens) {
  std::vector<std::byte> bytes;
  for (const tokenizer::TokenId token : tokens)
    for (int shift = 0; shift < 32; shift += 8)
      bytes.push_back(static_cast<std::byte>(static_cast<std::uint32_t>(token) >> shift & 255));
  return sha256_hex(bytes);
}

}  // namespace sluice::eval
