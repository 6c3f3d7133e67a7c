#include "serve/wire/anthropic/messages_blocks.h"

#include <utility>

#include "serve/wire/openai/chat_messages_body.h"

namespace sluice::serve {
namespace {

constexpr std::size_t kMostMessages = 4096;
constexpr std::string_view kBilling = "x-anthropic-billing-header:";

BodyValue text_value(std::string text) { return BodyValue(std::move(text)); }

BodyValue new_message(std::string role) {
  return BodyValue(BodyValue::Object{{"role", text_value(std::move(role))}});
}

// Lines that begin so change with every call, and would keep a prompt from being found again.
std::string without_billing(std::string_view text) {
  std::string kept;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
    const std::string_view line = text.substr(begin, end - begin);
    if (!line.starts_with(kBilling)) kept += line;
    begin = end;
  }
  return kept;
}

// A string, or blocks of text, joined.
std::string text_of(const BodyValue& value, const std::string& path, std::string_view between) {
  if (value.is_string()) return value.string();
  if (!value.is_array()) refuse_type(path, "a string or an array of text blocks", value);
  std::string text;
  for (std::size_t i = 0; i < value.array().size(); ++i) {
    const Fields block(value.array()[i], element_path(path, i));
    block.need("type");
    if (*block.string("type") != "text")
      throw unsupported_value(block.path("type"), "must be \"text\": this model reads text alone");
    block.need("text");
    if (!text.empty()) text += between;
    text += *block.string("text");
  }
  return text;
}

std::string system_text(const BodyValue& value, const std::string& path, bool keep_billing) {
  const std::string text = text_of(value, path, "\n\n");
  return keep_billing ? text : without_billing(text);
}

// The blocks of one message become up to several: results of tools, then what the user says.
class BlockReader {
 public:
  BlockReader(std::string role, BodyValue::Array& messages) : role_(std::move(role)), messages_(messages) {}

  void read(const Fields& block) {
    block.need("type");
    const std::string type = *block.string("type");
    if (type == "text") {
      block.need("text");
      text_ += *block.string("text");
      has_text_ = true;
    } else if (type == "tool_use" && role_ == "assistant") {
      read_call(block);
    } else if (type == "tool_result" && role_ == "user") {
      read_result(block);
    } else if (type == "thinking") {
      block.need("thinking");
      reasoning_ += *block.string("thinking");
    } else if (type != "redacted_thinking") {
      throw unsupported_value(block.path("type"),
                              "is no block that this model reads here, found " + shown(*block.find("type")));
    }
  }

  void finish() {
    if (!has_text_ && calls_.empty() && reasoning_.empty()) {
      if (!gave_result_) add(new_message(role_), true);
      return;
    }
    BodyValue message = new_message(role_);
    if (!calls_.empty()) set_member(message, "tool_calls", BodyValue(std::move(calls_)));
    if (!reasoning_.empty()) set_member(message, "reasoning_content", text_value(std::move(reasoning_)));
    add(std::move(message), has_text_ || !message.find("tool_calls"));
  }

 private:
  void add(BodyValue message, bool with_text) {
    if (with_text) set_member(message, "content", text_value(std::move(text_)));
    messages_.push_back(std::move(message));
    text_.clear();
  }

  void read_call(const Fields& block) {
    block.need("id");
    block.need("name");
    BodyValue::Object function{{"name", text_value(*block.string("name"))}};
    const BodyValue* input = block.find("input");
    if (input != nullptr && !input->is_object()) block.wrong_type("input", "an object");
    function.emplace_back("arguments", text_value(input == nullptr ? "{}" : body_text(*input)));
    calls_.emplace_back(BodyValue::Object{{"id", text_value(*block.string("id"))},
                                          {"type", text_value("function")},
                                          {"function", BodyValue(std::move(function))}});
  }

  void read_result(const Fields& block) {
    block.need("tool_use_id");
    std::string text = block.boolean("is_error").value_or(false) ? "Error: " : "";
    if (const BodyValue* content = block.find("content"))
      text += text_of(*content, block.path("content"), "\n");
    if (has_text_) {  // what was said before stays before
      add(new_message(role_), true);
      has_text_ = false;
    }
    BodyValue message = new_message("tool");
    set_member(message, "tool_call_id", text_value(*block.string("tool_use_id")));
    set_member(message, "content", text_value(std::move(text)));
    messages_.push_back(std::move(message));
    gave_result_ = true;
  }

  const std::string role_;
  BodyValue::Array& messages_;
  std::string text_, reasoning_;
  BodyValue::Array calls_;
  bool has_text_ = false, gave_result_ = false;
};

}  // namespace

BodyValue conversation_of_blocks(const Fields& body, bool keep_billing) {
  body.need("messages");
  const BodyValue* given = body.array("messages", kMostMessages);
  if (given->array().empty()) body.wrong_value("messages", "an array of at least one message");
  BodyValue::Array messages;
  const auto add_system = [&](const BodyValue& value, const std::string& path) {
    std::string text = system_text(value, path, keep_billing);
    if (text.empty()) return;
    BodyValue message = new_message("system");
    set_member(message, "content", text_value(std::move(text)));
    messages.push_back(std::move(message));
  };
  if (const BodyValue* system = body.find("system")) add_system(*system, "system");
  for (std::size_t i = 0; i < given->array().size(); ++i) {
    const Fields message(given->array()[i], element_path("messages", i));
    message.need("role");
    const std::string role = *message.word("role", {"user", "assistant", "system"});
    const BodyValue& content = message.need("content");
    const std::string path = message.path("content");
    if (role == "system") {
      add_system(content, path);
      continue;
    }
    if (!content.is_string() && !content.is_array())
      message.wrong_type("content", "a string or an array of blocks");
    BlockReader reader(role, messages);
    if (content.is_string()) {
      const BodyValue block(BodyValue::Object{{"type", text_value("text")}, {"text", content}});
      reader.read(Fields(block, path));
    } else {
      for (std::size_t k = 0; k < content.array().size(); ++k)
        reader.read(Fields(content.array()[k], element_path(path, k)));
    }
    reader.finish();
  }
  return BodyValue(std::move(messages));
}

}  // namespace sluice::serve
