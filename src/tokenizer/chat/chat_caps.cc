#include "tokenizer/chat/chat_caps.h"

#include <string_view>

#include "tokenizer/template/value_json.h"

namespace sluice::tokenizer {
namespace {

using Rendered = std::optional<std::string>;

// Words that no template has.
constexpr std::string_view kSystem = R"({"role":"system","content":"Qsystem7"})";
constexpr std::string_view kDeveloper = R"({"role":"developer","content":"Qdeveloper7"})";
constexpr std::string_view kUser = R"({"role":"user","content":"Quser7"})";
constexpr std::string_view kAnswer = R"({"role":"assistant","content":"Qanswer7"})";
constexpr std::string_view kParts = R"({"role":"user","content":[{"type":"text","text":"Qpart7"}]})";
constexpr std::string_view kTools =
    R"([{"type":"function","function":{"name":"qtool7","description":"Qdescription7","parameters":)"
    R"({"type":"object","properties":{"qkey7":{"type":"string","description":"Qkey"}},"required":["qkey7"]}}}])";
constexpr std::string_view kResults =
    R"({"role":"tool","tool_call_id":"qcallid07","name":"qtool7","content":"Qresult7"})";
constexpr std::string_view kSecondResults =
    R"({"role":"tool","tool_call_id":"qcallid08","name":"qtool8","content":"Qresult8"})";

std::string call(std::string_view id, std::string_view name, std::string_view arguments) {
  std::string text = R"({"id":")";
  text += id;
  text += R"(","type":"function","function":{"name":")";
  text += name;
  text += R"(","arguments":)";
  text += arguments;
  return text + "}}";
}

std::string calling(const std::string& calls) {
  return R"({"role":"assistant","content":"","tool_calls":[)" + calls + "]}";
}

class Probe {
 public:
  explicit Probe(const ProbeRender& render) : render_(render) {}

  // `messages` are JSON, with commas between them.
  Rendered operator()(const std::string& messages, bool prompt = true, bool tools = false,
                      std::optional<bool> thinking = std::nullopt) const {
    jinja::Dict variables(nullptr);
    variables.set("messages", json("[" + messages + "]"));
    variables.set("add_generation_prompt", prompt);
    variables.set("tools", tools ? json(std::string(kTools)) : jinja::Value(jinja::None{}));
    if (thinking) variables.set("enable_thinking", *thinking);
    return render_(variables);
  }

 private:
  static jinja::Value json(const std::string& text) { return jinja::read_json(text, Origin::kTemplate); }
  const ProbeRender& render_;
};

bool has(const Rendered& rendered, std::string_view text) {
  return rendered && rendered->find(text) != std::string::npos;
}

std::string joined(std::initializer_list<std::string_view> messages) {
  std::string all;
  for (const std::string_view message : messages) {
    if (!all.empty()) all += ',';
    all += message;
  }
  return all;
}

std::string without_blanks(std::string text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.erase(0, std::min(text.find_first_not_of(kBlanks), text.size()));
  text.erase(text.find_last_not_of(kBlanks) + 1);
  return text;
}

void probe_calls(const Probe& probe, ChatCaps& caps) {
  constexpr std::string_view kObject = R"({"qkey7":"Qvalue7"})", kString = R"("{\"qkey7\": \"Qvalue7\"}")";
  const auto appears = [](const Rendered& rendered) {
    return has(rendered, "Qvalue7") && has(rendered, "Qresult7");
  };
  const auto one = [&](std::string_view arguments) {
    const std::string message = calling(call("qcallid07", "qtool7", arguments));
    return probe(joined({kUser, message, kResults}), true, true);
  };
  const Rendered object = one(kObject);
  // An object that a template adds to a string without care is Python's form of it: {'qkey7': …}.
  caps.argument_object = appears(object) && !has(object, "'qkey7': 'Qvalue7'");
  const std::string_view arguments = caps.argument_object ? kObject : kString;
  caps.calls = caps.argument_object || appears(one(kString));
  if (!caps.calls) caps.argument_object = true;
  const std::string two =
      calling(call("qcallid07", "qtool7", arguments) + "," + call("qcallid08", "qtool8", arguments));
  const Rendered both = probe(joined({kUser, two, kResults, kSecondResults}), true, true);
  caps.two_calls = caps.calls && has(both, "qtool7") && has(both, "qtool8") && has(both, "Qresult8");
}

}  // namespace

ChatCaps probe_chat_template(const ProbeRender& render) {
  const Probe probe(render);
  ChatCaps caps;
  const std::string user(kUser);
  const Rendered plain = probe(user);
  caps.renders = has(plain, "Quser7");
  caps.system = has(probe(joined({kSystem, kUser})), "Qsystem7");
  const Rendered developer = probe(joined({kDeveloper, kUser}));
  caps.developer = has(developer, "Qdeveloper7") && has(developer, "developer");
  caps.tools = has(probe(user, true, true), "qtool7");
  probe_calls(probe, caps);
  const Rendered parts = probe(std::string(kParts));
  caps.parts = has(parts, "Qpart7") && !has(parts, "'text'") && !has(parts, "\"text\"");
  const Rendered on = probe(user, true, false, true), off = probe(user, true, false, false);
  caps.thinking_switch = on && off && *on != *off;
  const Rendered twice = probe(joined({kUser, R"({"role":"user","content":"Qsecond7"})"}));
  caps.alternates = caps.renders && !(has(twice, "Quser7") && has(twice, "Qsecond7"));
  caps.opens_thinking = plain && without_blanks(*plain).ends_with("<think>");
  // Before another message, since some templates leave the last answer open.
  const Rendered answered = probe(joined({kUser, kAnswer, R"({"role":"user","content":"Qsecond7"})"}), false);
  if (has(answered, "Qanswer7")) {
    const std::size_t begin = answered->rfind("Qanswer7") + std::string_view("Qanswer7").size();
    const std::size_t end = answered->find("Qsecond7", begin);
    caps.behind_answer = without_blanks(answered->substr(begin, end - begin));
  }
  return caps;
}

std::optional<TokenId> end_of_turn(const ChatCaps& caps, const Tokenizer& tokenizer) {
  const std::vector<TokenId> ids = tokenizer.encode(caps.behind_answer, AddSpecial::kNo);
  if (ids.empty() || !tokenizer.is_special(ids.front())) return std::nullopt;
  return ids.front();
}

}  // namespace sluice::tokenizer
