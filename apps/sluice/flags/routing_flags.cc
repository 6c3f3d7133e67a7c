#include "flags/routing_flags.h"

#include <charconv>
#include <memory>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/setting.h"
#include "base/shown_text.h"
#include "flags/split_list.h"
#include "streams/interrupt.h"
#include "streams/standard_error.h"
#include "trace/routing_script_reader.h"

namespace sluice::app {
namespace {

std::uint32_t parse_layer(const std::string& text) {
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layer);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(ErrorKind::kUsage, "this is not the number of a layer")
        .in(Setting::kRoutingLayers)
        .expected("numbers with commas between them, such as 1,6,11")
        .found("\"" + text + "\"")
        .fix("correct the entry");
  return layer;
}

}  // namespace

void check_played(const EngineFlags& flags, const experts::RouterPolicy& router) {
  const std::pair<Setting, const std::string&> needed[] = {{Setting::kRouting, flags.routing},
                                                           {Setting::kRoutingLayers, flags.routing_layers}};
  for (const auto& [setting, value] : needed)
    if (!router.scripted && !value.empty())
      throw Error(ErrorKind::kUsage, "this flag has no effect here")
          .in(setting)
          .expected(Setting::kRouter + " recorded")
          .found("router " + std::string(router.name))
          .fix("give what the flag needs, or leave " + setting + " out");
}

void read_script(const EngineFlags& flags, const model::ModelConfig& config, engine::EngineOptions& options) {
  if (flags.routing.empty()) return;
  if (config.sparse_layers() == 0)
    throw Error(ErrorKind::kUsage, "this model has no routed experts")
        .in(Setting::kRouting)
        .expected("a mixture of experts")
        .found(config.model_type + " without experts")
        .fix("leave " + Setting::kRouting + " out");
  std::vector<std::uint32_t> layers;
  if (!flags.routing_layers.empty())
    for (const std::string& text : split_list(flags.routing_layers, Setting::kRoutingLayers))
      layers.push_back(parse_layer(text));
  const std::unique_ptr<trace::RoutingTrace> trace = trace::open_trace(flags.routing);
  options.script =
      trace::read_routing_script(*trace,
                                 {config.sparse_layers(), static_cast<std::uint32_t>(config.moe.experts),
                                  static_cast<std::uint32_t>(config.moe.top_k)},
                                 layers, interrupted);
  if (trace->cut_off() && !flags.quiet)
    print_warning("{} was cut off; its last step is not played", shown_text(flags.routing));
}

}  // namespace sluice::app
