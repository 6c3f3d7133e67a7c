// Flags shared by every command that computes with a model, and opening that model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/setting.h"
#include "engine/plan/options.h"
#include "flags/common_flags.h"
#include "flags/slice_flags.h"
#include "model/architecture.h"
#include "store/checkpoint.h"
#include "tokenizer/tokenizer.h"

namespace sluice::engine {
class Engine;
}

namespace sluice::app {

class Command;

// The values that the user typed; engine_options() turns them into EngineOptions once.
struct EngineFlags : CommonFlags {
  std::string model;
  SliceFlags slices;
  std::string math = "auto", kv = "auto", disk = "auto";
  std::string preset, router, cache, cache_scope = "global", keep,
                                     dense = "auto";  // empty: the preset's
  std::string scheduler, prefetch, placement, placement_prefill;
  std::string device = "none", device_memory, device_cache, dense_on;  // empty: as EngineOptions says
  std::string device_keep = "auto", tiers, link;
  std::optional<std::int64_t> device_slots, prefetch_size;
  std::string residual;                    // file; empty: the store's sidecar if it has one
  bool records_ahead = false;              // predictions are recorded, that of the residual, too
  std::string ranks_of;                    // file; empty: nothing says which experts are popular
  std::string routing, routing_layers;     // of the router recorded: the trace, and the layers to play
  std::string capacity;                    // empty: what the budget leaves
  std::string profile;                     // file; empty: the store's sidecar if it has one for this machine
  std::int64_t chunk = 4096, context = 0;  // context 0: the model's maximum
};

// What the seed does in a command without sampling.
inline const std::string kSeedOfCaches = "For what draws (the cache marking, " + Setting::kWarmup +
                                         " random) and of costs measured at the start; default: 0";
// What the router does in a command that gets all tokens at once.
inline const std::string kRouterOfSteps = "all but exact change the result, where " + Setting::kPrefill +
                                          " leaves tokens to single steps: prompts are routed exactly";

// Whether a command has flags for policies, because they act there.
enum class PolicyFlags {
  kAll,   // experts are cached, fetched and computed by them, or planned for
  kNone,  // costs alone are measured
};

// Help for flags that act differently in different commands.
struct EngineHelp {
  std::string preset = "auto, which is zipmoe for packed stores";  // the default
  std::string seed = "Same seed, same random choices; default: random for sampling, printed";
  std::string router = "all but exact change the text; all but recorded route prompts exactly";
  std::string context =
      "Most tokens of prompt and answer together, less the answer's last (of each by itself, behind an "
      "encoder); an answer ends there; default: the model's maximum";
  PolicyFlags policies = PolicyFlags::kAll;
  bool devices = false;        // has the flags of a device; without policies, the device alone
  bool plays_routing = false;  // has the flags of the router recorded, which is for benchmarks
};
void add_engine_flags(Command& command, EngineFlags& flags, const EngineHelp& help = {});
// Who asks for a cache: a running model, or a replay, which can count beforehand what a cache must know.
enum class CacheUser { kModel, kReplay };
// Error(kUsage) that names `setting` for an unknown cache, and for one that must know what its user does not.
void check_cache(const std::string& name, Setting setting, CacheUser user);
// Flags of an exact reference at `path` beside the model of `flags`: default policies and the router exact;
// the machine as for the model.
EngineFlags reference_flags(const EngineFlags& flags, const std::string& path);
// Whether recorded ranks that the device's cache does not go by are an error, or are left out: then
// EngineOptions::popularity_name is empty.
enum class UnusedRanks { kRefused, kLeftOut };
// What the flags say; called once, before the model is opened, so that wrong flags are reported first.
// Callers add the positions of sequences. Error(kUsage), and errors of the files that flags name.
engine::EngineOptions engine_options(const EngineFlags& flags,
                                     UnusedRanks unused_ranks = UnusedRanks::kRefused);

// For the router recorded: reads the trace that it plays, and fits it to the model. Does nothing for other
// routers. Error(kInvalid), (kUsage) naming trace or flag; (kInterrupted).
void read_script(const EngineFlags& flags, const model::ModelConfig& config, engine::EngineOptions& options);

// For a packed store without a profile: keeps the profile that this run has measured as the store's sidecar,
// so that all later runs plan alike. Where a store's profile has no costs of this run's device, these are
// added to it, in place of those of another device. Does nothing if there is nothing new, if the user gave a
// profile, or if the store cannot be written.
void keep_profile(const EngineFlags& flags, const engine::Engine& engine);

// A checkpoint, its description, and its tokenizer (null if it has none and `with_tokenizer` is kIfThere).
// Warns of a sidecar that cannot be used, unless the user wants quiet.
struct OpenModel {
  std::unique_ptr<store::Checkpoint> checkpoint;
  model::Model model;
  std::unique_ptr<tokenizer::Tokenizer> tokenizer;
  double open_s = 0, tokenizer_s = 0;  // seconds that both took
};
enum class WithTokenizer { kNo, kIfThere, kRequired };
OpenModel open_model(const std::string& path, WithTokenizer with_tokenizer, const CommonFlags& flags);

// Tokens that the key/value cache may hold: the context that the user chose, else the model's
// maximum. Error(kUsage) for a context beyond that.
std::size_t context_tokens(const EngineFlags& flags, const model::Model& model);

// Token ids of a text from `file`. Error(kInvalid) naming file and byte for a text that is not UTF-8;
// Error(kBudget) for a text too large to be tokenized inside the budget.
std::vector<tokenizer::TokenId> encode_file(const tokenizer::Tokenizer& tokenizer, const std::string& text,
                                            const std::string& file, tokenizer::AddSpecial add_special,
                                            const CommonFlags& flags);

// Parses "1,2,3". Error(kUsage) naming `flag`, and the entry with its place in the list.
std::vector<tokenizer::TokenId> parse_token_list(const std::string& text, Setting setting);

}  // namespace sluice::app
