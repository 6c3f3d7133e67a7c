// The one place where flags are spelled. docs/architecture.md, "Errors", says how texts get their names.
#include "base/setting.h"

#include <random>

namespace sluice {
namespace {

constexpr SettingNames kNames = {{
    {Setting::kMemory, "--memory", "memory"},
    {Setting::kThreads, "-t,--threads", "threads"},
    {Setting::kIsa, "--isa", "isa"},
    {Setting::kIo, "--io", "io"},
    {Setting::kDisk, "--disk", "disk"},
    {Setting::kSeed, "--seed", "seed"},
    {Setting::kJson, "--json", "json"},
    {Setting::kQuiet, "-q,--quiet", "quiet"},
    {Setting::kHelp, "-h,--help", "help"},
    {Setting::kVersion, "--version", "version"},
    {Setting::kPrompt, "-p,--prompt", "prompt", true},
    {Setting::kFile, "-f,--file", "file", true},
    {Setting::kTokens, "--tokens", "tokens"},
    {Setting::kPredict, "-n,--predict", "max_tokens", true},
    {Setting::kContext, "-c,--context", "context", true},
    {Setting::kChunk, "--chunk", "chunk"},
    {Setting::kBatch, "--batch", "n"},
    {Setting::kTemperature, "--temp", "temperature"},
    {Setting::kTopK, "--top-k", "top_k"},
    {Setting::kTopP, "--top-p", "top_p"},
    {Setting::kMinP, "--min-p", "min_p"},
    {Setting::kRepeatPenalty, "--repeat-penalty", "repetition_penalty"},
    {Setting::kStop, "--stop", "stop"},
    {Setting::kIgnoreEos, "--ignore-eos", "ignore_eos"},
    {Setting::kPreset, "--preset", "preset"},
    {Setting::kRouter, "--router", "router"},
    {Setting::kCache, "--cache", "cache"},
    {Setting::kCacheScope, "--cache-scope", "cache_scope"},
    {Setting::kCapacity, "--capacity", "capacity"},
    {Setting::kScheduler, "--scheduler", "scheduler"},
    {Setting::kPrefetch, "--prefetch", "prefetch"},
    {Setting::kPlacement, "--placement", "placement"},
    {Setting::kProfile, "--profile", "profile"},
    {Setting::kKeep, "--keep", "keep"},
    {Setting::kDense, "--dense", "dense"},
    {Setting::kMath, "--math", "math"},
    {Setting::kKv, "--kv", "kv"},
    {Setting::kActivations, "--activations", "activations"},
    {Setting::kMaxLoss, "--max-loss", "max_loss"},
    {Setting::kPrecision, "--precision", "precision"},
    {Setting::kLowView, "--low-view", "low_view"},
    {Setting::kCritical, "--critical", "critical"},
    {Setting::kCriticalCount, "--critical-count", "critical_count"},
    {Setting::kTheta, "--theta", "theta"},
    {Setting::kLsbMiss, "--lsb-miss", "lsb_miss"},
    {Setting::kLsbReserve, "--lsb-reserve", "lsb_reserve"},
    {Setting::kWarmup, "--warmup", "warmup"},
    {Setting::kKappa, "--kappa", "kappa"},
    {Setting::kRho, "--rho", "rho"},
    {Setting::kConstraint, "--constraint", "constraint"},
    {Setting::kMissRate, "--miss-rate", "miss_rate"},
    {Setting::kLambda, "--lambda", "lambda"},
    {Setting::kEta, "--eta", "eta"},
    {Setting::kCumsumP, "--cumsum-p", "cumsum_p"},
    {Setting::kTopJ, "--top-j", "top_j"},
    {Setting::kOut, "-o,--out", "out", true},
    {Setting::kOutput, "-o,--output", "output", true},
    {Setting::kDecisions, "--decisions", "decisions"},
    {Setting::kShowExperts, "--show-experts", "show_experts"},
    {Setting::kMachine, "--machine", "machine"},
    {Setting::kTrace, "--trace", "trace"},
    {Setting::kAppend, "--append", "append"},
    {Setting::kLimit, "--limit", "limit"},
    {Setting::kSpecial, "--special", "special"},
    {Setting::kNoSpecial, "--no-special", "no_special"},
    {Setting::kEncoderTokens, "--encoder-tokens", "encoder_tokens"},
    {Setting::kTask, "--task", "task"},
    {Setting::kData, "--data", "data"},
    {Setting::kCtx, "--ctx", "window_tokens"},
    {Setting::kStride, "--stride", "stride"},
    {Setting::kPrefill, "--prefill", "prefill"},
    {Setting::kState, "--state", "state"},
    {Setting::kReference, "--reference", "reference"},
    {Setting::kReferenceMemory, "--reference-memory", "reference_memory"},
    {Setting::kWhole, "--whole", "whole"},
    {Setting::kRuns, "--runs", "runs"},
    {Setting::kCodec, "--codec", "codec"},
    {Setting::kLevel, "--level", "level"},
    {Setting::kChunks, "--chunks", "chunks"},
    {Setting::kSlices, "--slices", "slices"},
    {Setting::kQuantiser, "--quantiser", "quantiser"},
    {Setting::kExclude, "--exclude", "exclude"},
    {Setting::kWorkers, "--workers", "workers"},
    {Setting::kFull, "--full", "full"},
    {Setting::kTensors, "--tensors", "tensors"},
    {Setting::kRanksOf, "--ranks-of", "ranks_of"},
    {Setting::kRepeats, "--repeats", "repeats"},
    {Setting::kLayers, "--layers", "layers"},
    {Setting::kExperts, "--experts", "experts"},
    {Setting::kDtype, "--dtype", "dtype"},
    {Setting::kShardSize, "--shard-size", "shard_size"},
    {Setting::kEmbeddingScale, "--embedding-scale", "embedding_scale"},
    {Setting::kEmbeddingCommon, "--embedding-common", "embedding_common"},
    {Setting::kScope, "--scope", "scope"},
    {Setting::kPools, "--pools", "pools"},
    {Setting::kExpertBytes, "--expert-bytes", "expert_bytes"},
    {Setting::kWindow, "--window", "window"},
    {Setting::kDelta, "--delta", "delta"},
    {Setting::kDemote, "--demote", "demote"},
    {Setting::kHalfLife, "--half-life", "half_life"},
    {Setting::kMemoryExperts, "--memory-experts", "memory_experts"},
    {Setting::kShape, "--shape", "shape"},
    {Setting::kModel, "-m,--model", "model"},
    {Setting::kBudget, "--budget", "budget"},
    {Setting::kQuick, "--quick", "quick"},
    {Setting::kAhead, "--ahead", "ahead"},
    {Setting::kGateInputs, "--gate-inputs", "gate_inputs"},
    {Setting::kRoutingLayers, "--routing-layers", "routing_layers"},
    {Setting::kRouting, "--routing", "routing"},
    {Setting::kDeviceMemory, "--device-memory", "device_memory"},
    {Setting::kDeviceSlots, "--device-slots", "device_slots"},
    {Setting::kDeviceCache, "--device-cache", "device_cache"},
    {Setting::kWSize, "--w-size", "w_size"},
    {Setting::kUSize, "--u-size", "u_size"},
    {Setting::kDevice, "--device", "device"},
    {Setting::kPrefetchSize, "--prefetch-size", "prefetch_size"},
    {Setting::kResidual, "--residual", "residual"},
    {Setting::kDenseOn, "--dense-on", "dense_on"},
    {Setting::kDeviceKeep, "--device-keep", "device_keep"},
    {Setting::kTiers, "--tiers", "tiers"},
    {Setting::kAlpha, "--alpha", "alpha"},
    {Setting::kMerge, "--merge", "merge"},
    {Setting::kRenorm, "--renorm", "renorm"},
    {Setting::kPlacementPrefill, "--placement-prefill", "placement_prefill"},
    {Setting::kLink, "--link", "link"},
    {Setting::kResident, "--resident", "resident"},
    {Setting::kAdmit, "--admit", "admit"},
    {Setting::kFormat, "--format", "format"},
    {Setting::kChatTemplate, "--chat-template", "chat_template"},
    {Setting::kSystem, "--system", "system"},
    {Setting::kThink, "--think", "think"},
    {Setting::kNoHistory, "--no-history", "no_history"},
    {Setting::kSimpleIo, "--simple-io", "simple_io"},
    {Setting::kNoGenerationPrompt, "--no-generation-prompt", "no_generation_prompt"},
    {Setting::kSet, "--set", "set"},
    {Setting::kCaps, "--caps", "caps"},
    {Setting::kHost, "--host", "host"},
    {Setting::kPort, "--port", "port"},
    {Setting::kUnix, "--unix", "unix"},
    {Setting::kApiKey, "--api-key", "api_key"},
    {Setting::kApiKeyFile, "--api-key-file", "api_key_file"},
    {Setting::kNoAuth, "--no-auth", "no_auth"},
    {Setting::kAllowedHost, "--allowed-host", "allowed_host"},
    {Setting::kCorsOrigin, "--cors-origin", "cors_origin"},
    {Setting::kAlias, "--alias", "alias"},
    {Setting::kStrictModel, "--strict-model", "strict_model"},
    {Setting::kParallel, "--parallel", "parallel"},
    {Setting::kKvTokens, "--kv-tokens", "kv_tokens"},
    {Setting::kDecodeShare, "--decode-share", "decode_share"},
    {Setting::kQueue, "--queue", "queue"},
    {Setting::kSsePing, "--sse-ping", "sse_ping"},
    {Setting::kDrain, "--drain", "drain"},
    {Setting::kLogJson, "--log-json", "log_json"},
    {Setting::kLogPrompts, "--log-prompts", "log_prompts"},
    {Setting::kUiDir, "--ui-dir", "ui_dir"},
    {Setting::kNoUi, "--no-ui", "no_ui"},
    {Setting::kTrustSpecial, "--trust-special", "trust_special"},
    {Setting::kToolFormat, "--tool-format", "tool_format"},
    {Setting::kKeepBillingHeader, "--keep-billing-header", "keep_billing_header"},
    {Setting::kPresencePenalty, "--presence-penalty", "presence_penalty"},
    {Setting::kFrequencyPenalty, "--frequency-penalty", "frequency_penalty"},
    {Setting::kLogitBias, "--logit-bias", "logit_bias"},
    {Setting::kChat, "--chat", "chat"},
    {Setting::kDeviceMath, "--device-math", "device_math"},
    {Setting::kDraft, "--draft", "draft"},
    {Setting::kHours, "--hours", "hours"},
    {Setting::kTokenizer, "--tokenizer", "tokenizer"},
    {Setting::kTimedBits, "--allow-timing-dependent-bits", "allow_timing_dependent_bits"},
}};

constexpr bool in_order(const SettingNames& names) {
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].setting.index() != i || names[i].flags.empty() || names[i].field.empty()) return false;
  return true;
}
static_assert(in_order(kNames));

// Marks: kMarkBegin, a word of 64 random bits, and the index. Nobody who writes a file or a command line
// knows the word.
constexpr std::size_t kWordBegin = 1, kWordLetters = 16, kIndexLetters = 2;
constexpr std::size_t kIndexBegin = kWordBegin + kWordLetters, kMarkBytes = kIndexBegin + kIndexLetters;
static_assert(kSettings <= 26 * 26);

class Marks {
 public:
  Marks() {
    std::random_device random;
    Mark& first = all_[0];
    first[0] = Setting::kMarkBegin;
    for (std::size_t i = kWordBegin; i < kIndexBegin; ++i) first[i] = static_cast<char>('a' + random() % 16);
    for (std::size_t i = 0; i < kSettings; ++i) {
      all_[i] = first;
      all_[i][kIndexBegin] = static_cast<char>('a' + i / 26);
      all_[i][kIndexBegin + 1] = static_cast<char>('a' + i % 26);
    }
  }
  std::string_view of(std::size_t index) const { return {all_[index].data(), kMarkBytes}; }
  // The index of the mark that `text` begins with.
  std::optional<std::size_t> leading(std::string_view text) const {
    for (std::size_t i = 0; i < kSettings; ++i)
      if (text.starts_with(of(i))) return i;
    return std::nullopt;
  }

 private:
  using Mark = std::array<char, kMarkBytes>;
  std::array<Mark, kSettings> all_;
};

const Marks& marks() {
  static const Marks kMarks;
  return kMarks;
}

}  // namespace

const SettingNames& setting_names() { return kNames; }

const SettingName& name_of(Setting setting, const SettingNames& names) { return names[setting.index()]; }

std::string mark(Setting setting) { return std::string(std::string_view(setting)); }

std::string operator+(std::string text, Setting setting) { return text.append(std::string_view(setting)); }

std::string operator+(Setting setting, std::string_view text) { return mark(setting).append(text); }

Setting::operator std::string_view() const { return marks().of(index_); }

std::string_view leading_mark(std::string_view text) {
  return marks().leading(text) ? text.substr(0, kMarkBytes) : std::string_view();
}

std::optional<Setting> marked_setting(std::string_view text) {
  const std::optional<std::size_t> index = marks().leading(text);
  return index && text.size() == kMarkBytes ? std::optional(kNames[*index].setting) : std::nullopt;
}

std::string with_names(std::string_view text, NamedBy by, const SettingNames& names) {
  std::string named;
  while (!text.empty()) {
    const std::size_t plain = std::min(text.find(Setting::kMarkBegin), text.size());
    named += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) break;
    const std::optional<std::size_t> index = marks().leading(text);
    named += !index ? text.substr(0, 1) : by == NamedBy::kFlag ? names[*index].flag() : names[*index].field;
    text.remove_prefix(index ? kMarkBytes : 1);
  }
  return named;
}

std::string flag(Setting setting) { return std::string(name_of(setting).flag()); }

}  // namespace sluice
