#include "commands/simulate/routing_report.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/setting.h"
#include "streams/standard_error.h"

namespace sluice::app {

Json smoe_routing_json(const lab::ReplayRouter& router, const lab::ReplayRouting& routing) {
  Json json = {{"router", router.router.name()},
               {"lossy", router.routes()},
               {"tokens", routing.all.tokens},
               {"decode_tokens", routing.decode.tokens},
               {"changed_tokens", routing.all.changed_tokens},
               {"substituted", routing.all.substituted},
               {"mass_lost", routing.all.mass_lost},
               {"recorded_differs", routing.recorded_differs}};
  if (!router.routes()) return json;
  json["alpha"] = router.smoe.alpha;
  json["calibrated"] = false;  // nobody has measured what alpha costs this model
  return json;
}

std::string smoe_loss_text(const lab::ReplayRouter& router, const lab::ReplayRouting& routing) {
  const experts::RoutingChanges& decode = routing.decode;
  const double tokens = static_cast<double>(std::max<std::uint64_t>(decode.tokens, 1));
  return fmt::format(
      "{} is lossy: alpha {:.4g} (uncalibrated); while decoding, {:.1f} % of tokens' sets changed, {} "
      "experts "
      "substituted, {:.2f} % of all scores lost",
      router.router.name(), router.smoe.alpha, 100 * static_cast<double>(decode.changed_tokens) / tokens,
      decode.substituted, 100 * decode.mass_lost / tokens);
}

void warn_of_own_rule(const SimulateOptions& options, std::uint64_t differs) {
  if (differs == 0 || options.common.quiet) return;
  print_warning(
      "{} recorded choices of a prompt's token in a layer are not the best of their logits: the model "
      "limits its selection by a rule that {} does not say, and a run with {} smoe decides otherwise than "
      "this replay",
      differs, options.trace, flag(Setting::kRouter));
}

}  // namespace sluice::app
