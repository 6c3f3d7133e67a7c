#include "commands/serve/serve_flags.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/setting.h"
#include "flags/command_line.h"
#include "flags/number_range.h"

namespace sluice::app {
namespace {

constexpr const char *kWhere = "Where it listens, and to whom", *kWhat = "What it serves",
                     *kHow = "How it runs";

void add_listening(Command& command, ServeFlags& flags) {
  command.add_option(Setting::kHost, &flags.host, "Address; one that others reach needs a key")
      ->show_default()
      ->group(kWhere);
  command.add_option(Setting::kPort, &flags.port, "Port; 0: any that is free")
      ->show_default()
      ->check(whole_number(Setting::kPort, 0, 65535))
      ->group(kWhere);
  command.add_option(Setting::kUnix, &flags.unix_path, "A socket of this path, instead of an address")
      ->group(kWhere);
  command
      .add_option(Setting::kApiKey, &flags.api_keys,
                  "Clients must have this key; may be given several times; also SLUICE_API_KEY")
      ->group(kWhere);
  command
      .add_option(Setting::kApiKeyFile, &flags.api_key_file,
                  "A file of keys, one a line; lines that begin with # are none")
      ->group(kWhere);
  command.add_flag(Setting::kNoAuth, flags.no_auth, "Serve an address that others reach without a key")
      ->group(kWhere);
  command
      .add_option(Setting::kAllowedHost, &flags.allowed_hosts,
                  "A name of this machine that clients may use; may be given several times")
      ->group(kWhere);
  command
      .add_option(Setting::kCorsOrigin, &flags.cors_origins,
                  "A web page's origin that may ask from a browser (https://page.example)")
      ->group(kWhere);
}

void add_serving(Command& command, ServeFlags& flags) {
  command
      .add_option(Setting::kAlias, &flags.alias, "The model's name for clients; default: that of its folder")
      ->group(kWhat);
  command.add_flag(Setting::kStrictModel, flags.strict_model, "Refuse requests for a model of another name")
      ->group(kWhat);
  command
      .add_option(Setting::kChatTemplate, &flags.chat_template,
                  "A file, or chatml, in place of the model's own template")
      ->group(kWhat);
  command
      .add_option(Setting::kToolFormat, &flags.tool_format,
                  "How the model writes calls of tools; default: as its template does")
      ->group(kWhat);
  command
      .add_flag(Setting::kTrustSpecial, flags.trust_special,
                "Control tokens in the text of requests count, too")
      ->group(kWhat);
  command
      .add_flag(Setting::kKeepBillingHeader, flags.keep_billing_header,
                "Keep the system line x-anthropic-billing-header, which changes with each call")
      ->group(kWhat);
  command.add_option(Setting::kUiDir, &flags.ui_dir, "Serve the page from this folder")->group(kWhat);
  command.add_flag(Setting::kNoUi, flags.no_ui, "No page")->group(kWhat);
}

FlagCheck seconds(Setting setting, double most) {
  return [=](const std::string& text) {
    std::size_t end = 0;
    double value = -1;
    try {
      value = std::stod(text, &end);
    } catch (const std::exception&) {
    }
    if (end == text.size() && value >= 0 && value <= most) return;
    throw Error(ErrorKind::kUsage, "value out of range")
        .in(setting)
        .expected(fmt::format("a number from 0 to {}", most))
        .found(text);
  };
}

void add_running(Command& command, ServeFlags& flags) {
  command.add_option(Setting::kParallel, &flags.parallel, "Most answers that are made at once")
      ->show_default()
      ->check(whole_number(Setting::kParallel, 1, 64))
      ->group(kHow);
  command
      .add_option(Setting::kKvTokens, &flags.kv_tokens,
                  "Tokens whose keys and values all answers together may have; default: by the budget")
      ->check(whole_number(Setting::kKvTokens, 1, std::uint64_t{1} << 31))
      ->group(kHow);
  command
      .add_option(Setting::kDecodeShare, &flags.decode_share,
                  "Share of the time beside a new prompt that running answers get: 0 to 1")
      ->show_default()
      ->check(seconds(Setting::kDecodeShare, 1))
      ->group(kHow);
  command.add_option(Setting::kQueue, &flags.queue, "Most requests that wait")
      ->show_default()
      ->check(whole_number(Setting::kQueue, 0, 100'000))
      ->group(kHow);
  command
      .add_option(Setting::kSsePing, &flags.sse_ping_s,
                  "Seconds between signs of life where a stream has nothing else to say; 0: none")
      ->show_default()
      ->check(seconds(Setting::kSsePing, 3600))
      ->group(kHow);
  command.add_option(Setting::kDrain, &flags.drain_s, "Seconds that running answers get at the end")
      ->show_default()
      ->check(seconds(Setting::kDrain, 86400))
      ->group(kHow);
  command.add_flag(Setting::kLogJson, flags.log_json, "A JSON object for each request in the log")
      ->group(kHow);
  command
      .add_option(Setting::kLogPrompts, &flags.log_prompts,
                  "Keep prompts in this folder; without it no text is ever written down")
      ->group(kHow);
}

}  // namespace

void check_sampling(const SamplingFlags& flags) {
  const auto check = [](Setting setting, const std::optional<double>& value, bool fine,
                        std::string_view range) {
    if (value && !fine)
      throw Error(ErrorKind::kUsage, "value out of range")
          .in(setting)
          .expected(fmt::format("a number {}", range))
          .found(fmt::format("{}", *value));
  };
  const auto within = [](const std::optional<double>& value, double least, double most) {
    return value && *value >= least && *value <= most;
  };
  check(Setting::kTemperature, flags.temperature, within(flags.temperature, 0, 2), "from 0 to 2");
  check(Setting::kTopP, flags.top_p, within(flags.top_p, 0, 1) && flags.top_p > 0, "above 0, at most 1");
  check(Setting::kMinP, flags.min_p, within(flags.min_p, 0, 1), "from 0 to 1");
  check(Setting::kRepeatPenalty, flags.repetition_penalty,
        within(flags.repetition_penalty, 0, 10) && flags.repetition_penalty > 0, "above 0, at most 10");
}

void add_serve_flags(Command& command, ServeFlags& flags) {
  add_listening(command, flags);
  add_serving(command, flags);
  add_running(command, flags);
}

}  // namespace sluice::app
