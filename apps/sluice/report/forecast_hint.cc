#include "report/forecast_hint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/setting.h"
#include "base/shown_text.h"
#include "engine/engine.h"
#include "engine/generate/generate.h"
#include "engine/plan/memory_plan.h"
#include "engine/run_report.h"
#include "engine/watch/statistics.h"
#include "report/ratios.h"
#include "store/checkpoint.h"

namespace sluice::app {
namespace {

constexpr double kFar = 2;
constexpr double kMatters = 0.25;                            // share of the bytes of a token
constexpr double kBlock = static_cast<double>(kBlockBytes);  // less than that is nothing

bool far(double predicted, double measured) {
  return measured > kFar * predicted || kFar * measured < predicted;
}

}  // namespace

Decoded decoded_of(const engine::RunReport& run, const std::vector<engine::GenerateResult>& results) {
  const engine::ExpertStatistics& decode = run.statistics.decode;
  Decoded decoded;
  decoded.tokens = decode.tokens;
  decoded.bytes_per_token = ratio(static_cast<double>(decode.read()), static_cast<double>(decode.tokens));
  decoded.wasted_per_token =
      ratio(static_cast<double>(decode.wasted_bytes()), static_cast<double>(decode.tokens));
  decoded.read_s_per_token = ratio(decode.demand_s, static_cast<double>(decode.tokens));
  double tokens = 0, seconds = 0;
  for (const engine::GenerateResult& result : results) {
    tokens += result.tokens.empty() ? 0 : static_cast<double>(result.tokens.size() - 1);
    seconds = std::max(seconds, result.decode_s);
  }
  decoded.tok_s = ratio(tokens, seconds);
  decoded.cache = run.memory.experts;
  decoded.model = run.checkpoint.path();
  decoded.packed = run.checkpoint.packed();
  return decoded;
}

std::string bytes_hint(const engine::ReadForecast& forecast, const Decoded& decoded) {
  const double predicted = forecast.expected(), measured = decoded.bytes_per_token;
  if (decoded.tokens == 0 || std::max(predicted, measured) < kBlock || !far(predicted, measured)) return "";
  const double more = (measured - predicted) * static_cast<double>(decoded.tokens);
  if (more > 0 && more <= static_cast<double>(decoded.cache))
    return "a short text: the difference is what fills the caches, once; a longer text comes nearer";
  if (!forecast.router.empty())
    return fmt::format("the prediction is of the experts that the model chooses; the router {} {}",
                       forecast.router,
                       more < 0 ? "took others, which were in memory" : "took others, which had to be read");
  if (!forecast.in_vain)
    return "how well this " + flag(Setting::kPrefetch) + " guesses is not predicted; " +
           flag(Setting::kPrefetch) + " none is";
  const std::string model = shown_text(decoded.model);
  const std::string profile =
      decoded.packed ? fmt::format("sluice profile {} {} routing.trace", model, flag(Setting::kTrace))
                     : fmt::format(
                           "sluice profile {} {} routing.trace {} here.json, then {} "
                           "here.json",
                           model, flag(Setting::kTrace), flag(Setting::kOutput), flag(Setting::kProfile));
  if (forecast.routing != "recorded")
    return fmt::format(
        "routing was assumed; record this model's: sluice trace {} {} TEXT {} 200 {} routing.trace, then {}",
        model, flag(Setting::kPrompt), flag(Setting::kPredict), flag(Setting::kOutput), profile);
  return fmt::format(
      "the prediction takes caches as holding the experts that the recorded text uses most; this cache holds "
      "others, or this text uses others: record one like it, then {}",
      profile);
}

std::string waste_hint(const engine::ReadForecast& forecast, const Decoded& decoded) {
  if (decoded.tokens == 0 || !forecast.in_vain) return "";
  const double predicted = *forecast.in_vain, measured = decoded.wasted_per_token;
  if (std::max(predicted, measured) < kBlock || !far(predicted, measured)) return "";
  // What hardly changes the bytes of a token needs no advice.
  if (std::abs(measured - predicted) < kMatters * std::max(forecast.expected(), decoded.bytes_per_token))
    return "";
  return measured < predicted
             ? "less was read in vain than predicted: read-ahead was stopped, had no room, or guessed better"
             : "more was read in vain than predicted: read-ahead guesses worse here; " +
                   flag(Setting::kPrefetch) +
                   " none reads "
                   "nothing in vain";
}

std::string speed_hint(const engine::ReadForecast& forecast, const Decoded& decoded) {
  if (!forecast.tok_s || decoded.tok_s <= 0 || !far(*forecast.tok_s, decoded.tok_s)) return "";
  const bool faster = decoded.tok_s > *forecast.tok_s;
  const double less = faster ? decoded.bytes_per_token : forecast.expected(),
               more = faster ? forecast.expected() : decoded.bytes_per_token;
  const double by_speed = std::max(decoded.tok_s / *forecast.tok_s, *forecast.tok_s / decoded.tok_s);
  // Beside no bytes at all any number is many times more: then the time that reads took must explain it.
  const double longer = 1 / decoded.tok_s - 1 / *forecast.tok_s;
  const bool explains =
      less >= kBlock || faster ? by_speed * less <= kFar * more : kFar * decoded.read_s_per_token >= longer;
  if (more >= kBlock && more > (1 + kMatters) * less && explains)
    return fmt::format("decoding was {} than predicted, as {} was read than predicted",
                       faster ? "faster" : "slower", faster ? "less" : "more");
  return fmt::format(
      "decoding was {} than predicted, which the bytes do not explain: reading or computing took another "
      "time than when "
      "it was measured; on an otherwise idle machine: sluice profile {}",
      faster ? "faster" : "slower", shown_text(decoded.model));
}

}  // namespace sluice::app
