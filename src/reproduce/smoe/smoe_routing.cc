#include "reproduce/smoe/smoe_routing.h"

namespace sluice::reproduce {

lab::SyntheticRouting smoe_routing(SmoeRoutingKind kind) {
  return {.layers = 26,
          .experts = 64,
          .top_k = 6,
          .prompts = 8,
          .tokens = 612,
          .a = .302,
          .d = .1,
          .phi = kind == SmoeRoutingKind::kFitted ? .359 : .828,
          .sigma = .861,
          .seed = 1};
}

}  // namespace sluice::reproduce
