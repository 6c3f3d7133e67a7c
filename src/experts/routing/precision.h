// At which precision a token's experts are computed, and what that asks of the cache. SliceMoE; SPEC §4.3,
// §5.1.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "experts/cache/cache.h"
#include "experts/routing/router.h"

namespace sluice::experts {

// Which experts of a token are critical, by their weights g.
struct CriticalRule {
  enum class Kind : std::uint8_t {
    kSingleHead,  // g / Σ g >= theta; at most 1/theta of them
    kRelTop1,     // g >= theta * (the largest g)
    kFixedTopC,   // the `count` largest (ties: lower id)
  };
  Kind kind = Kind::kSingleHead;
  double theta = 0.35;
  std::uint32_t count = 1;

  void validate(std::uint32_t top_k) const;  // Error(kUsage); top_k: experts of a token
};
CriticalRule::Kind critical_kind(std::string_view name);  // single-head, rel_top1, fixed_top_c; Error(kUsage)

enum class PrecisionMode : std::uint8_t {
  kFull,  // families without slices: Choice::precision stays as it is
  kDbsc,  // critical experts high, the others low
  kHigh,
  kLow,
};
PrecisionMode precision_mode(std::string_view name);  // full, dbsc, high, low; Error(kUsage)
std::string_view precision_name(PrecisionMode mode);
// For models in slices: the parts of an expert that must be in memory for any use.
Parts least_parts(PrecisionMode mode);
// … and those that a cache keeps of an expert; one that holds slices separately may keep fewer.
Parts kept_slices(PrecisionMode mode, bool holds_slices);

struct PrecisionRule {
  PrecisionMode mode = PrecisionMode::kDbsc;
  CriticalRule critical = {};
};

// Sets the wanted precision of each choice: kHigh or kLow. The weights are those of the final sets. A token
// whose weights sum to 0 has no critical expert under kSingleHead.
void set_precision(const PrecisionRule& rule, Routing& routing);

// What the tokens of one event ask for together. Keeps its memory from event to event. Thread-compatible.
class SliceDemands {
 public:
  // Reads Choice::precision. Ranks experts by the highest score from a token that chose them (ties: lower
  // id); experts are critical if any token wants them high.
  void gather(const ScoresView& scores, const Routing& routing);
  // Valid until the next gather, and as long as the spans of the scores. For a prompt's event (one that has
  // prompt tokens) it has critical_tokens, by ascending expert, as Residency::on_event takes them.
  SliceDemand demand(Bytes lsb_allowance = kAnyBytes) const;
  // The slices that the event asks for of an expert of it.
  Parts asked(ExpertId id) const;
  // Leaves out all but these experts: whoever has the others does not ask this memory for them. Ascending.
  void narrow_to(std::span<const ExpertId> experts);

 private:
  struct Wanted {
    float score = 0;
    std::uint32_t tokens = 0, critical = 0;
  };
  std::vector<Wanted> wanted_;  // by expert of the layer
  std::vector<ExpertId> ranked_, critical_;
  std::vector<std::uint32_t> critical_tokens_;
  std::span<const SequenceSpan> spans_;
  bool prompt_ = false;
};

}  // namespace sluice::experts
