// Chat templates are programs in a small language, that of jinja2 (docs/chat-templates.md). A template is
// parsed once and rendered as often as wanted:
//
//   const Template chat = Template::parse(source, "chat_template.jinja");
//   jinja::Dict variables(nullptr);
//   variables.set("messages", jinja::read_json(text, Origin::kRequest));
//   const MarkedText prompt = chat.render(variables);
#pragma once

#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/template/limits.h"
#include "tokenizer/template/value.h"
#include "tokenizer/text/marked_text.h"

namespace sluice::tokenizer {

namespace jinja {
struct Syntax;
}

struct RenderOptions {
  std::optional<std::tm> now;  // for strftime_now(); empty: the machine's local time
};

// Immutable after parsing; thread-safe: each rendering has a state of its own. Variables may be shared by
// renderings, too, as long as nobody changes them.
class Template {
 public:
  // `name` stands for the template in errors. Error(kInvalid) naming line and column: text that is no
  // template, a tag that is not supported, a template that is too long or nests too deep.
  static Template parse(std::string_view source, std::string name, const TemplateLimits& limits = {});
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  // The text, which knows the bytes that came from strings of the variables with a request's origin.
  // Error(kInvalid) naming line and column: what the template refuses (raise_exception), operations that
  // make no sense, and the limits, each of which its message names.
  MarkedText render(const jinja::Dict& variables, const RenderOptions& options = {}) const;

  const std::string& name() const { return name_; }
  const std::string& source() const { return source_; }

 private:
  Template(std::string_view source, std::string name, const TemplateLimits& limits);

  std::string name_, source_;
  TemplateLimits limits_;
  std::unique_ptr<const jinja::Syntax> syntax_;
};

}  // namespace sluice::tokenizer
