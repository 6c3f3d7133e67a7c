#include "commands/chat/chat_settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/error.h"
#include "base/unknown_name.h"

namespace sluice::app {
namespace {

struct ThinkRow {
  std::string_view name;
  Think think;
};
constexpr ThinkRow kThinks[] = {
    {"auto", Think::kAuto}, {"on", Think::kOn}, {"off", Think::kOff}, {"hide", Think::kHide}};

template <class Number>
Number number(const std::string& where, const std::string& text, std::string_view expected) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw Error(ErrorKind::kUsage, "the value is not a number")
        .in(where)
        .expected(expected)
        .found('"' + text + '"')
        .fix("give such a number");
  return value;
}

bool yes_or_no(const std::string& where, const std::string& text) {
  if (text == "on" || text == "off") return text == "on";
  throw unknown_name(where, text, {"on", "off"});
}

// A setting: how a text sets it, and as what text it is shown.
struct SettingRow {
  std::string_view name;
  void (*set)(ChatSettings&, const std::string& where, const std::string& text);
  std::string (*show)(const ChatSettings&);
};
constexpr SettingRow kRows[] = {
    {"temp",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.sampler.temperature = number<double>(where, text, "a temperature; 0 is greedy");
     },
     [](const ChatSettings& s) { return fmt::format("{}", s.sampler.temperature); }},
    {"top-k",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.sampler.top_k = number<std::int64_t>(where, text, "a number of tokens; 0 is all");
     },
     [](const ChatSettings& s) { return fmt::format("{}", s.sampler.top_k); }},
    {"top-p",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.sampler.top_p = number<double>(where, text, "a probability; 1 is all");
     },
     [](const ChatSettings& s) { return fmt::format("{}", s.sampler.top_p); }},
    {"min-p",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.sampler.min_p = number<double>(where, text, "a share of the likeliest's probability; 0 is all");
     },
     [](const ChatSettings& s) { return fmt::format("{}", s.sampler.min_p); }},
    {"seed",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.seed.reset();
       if (text != "random") s.seed = number<std::uint64_t>(where, text, "a whole number, or random");
     },
     [](const ChatSettings& s) { return s.seed ? fmt::format("{}", *s.seed) : std::string("random"); }},
    {"n",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.most_tokens = number<std::size_t>(where, text, "a number of tokens; 0 is as many as fit");
     },
     [](const ChatSettings& s) { return fmt::format("{}", s.most_tokens); }},
    {"stop",
     [](ChatSettings& s, const std::string&, const std::string& text) {
       s.stop.clear();
       if (!text.empty()) s.stop.push_back(text);
     },
     [](const ChatSettings& s) { return fmt::format("{}", fmt::join(s.stop, ", ")); }},
    {"think",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.think = think_named(where, text);
     },
     [](const ChatSettings& s) {
       return std::string(std::ranges::find(kThinks, s.think, &ThinkRow::think)->name);
     }},
    {"stats",
     [](ChatSettings& s, const std::string& where, const std::string& text) {
       s.statistics = yes_or_no(where, text);
     },
     [](const ChatSettings& s) { return std::string(s.statistics ? "on" : "off"); }},
};

}  // namespace

Think think_named(const std::string& where, const std::string& name) {
  const auto* const row = std::ranges::find(kThinks, name, &ThinkRow::name);
  if (row == std::end(kThinks)) throw unknown_name(where, name, names_in(kThinks));
  return row->think;
}

void set_by_name(ChatSettings& settings, const std::string& name, const std::string& value) {
  const auto* const row = std::ranges::find(kRows, name, &SettingRow::name);
  if (row == std::end(kRows)) throw unknown_name("/set", name, names_in(kRows));
  ChatSettings changed = settings;
  row->set(changed, "/set " + name, value);
  changed.sampler.validate();
  settings = std::move(changed);
}

std::vector<std::pair<std::string, std::string>> shown_settings(const ChatSettings& settings) {
  std::vector<std::pair<std::string, std::string>> shown;
  for (const SettingRow& row : kRows) shown.emplace_back(row.name, row.show(settings));
  return shown;
}

}  // namespace sluice::app
