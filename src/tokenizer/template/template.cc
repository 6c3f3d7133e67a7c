#include "tokenizer/template/template.h"

#include <utility>

#include "tokenizer/template/parser.h"
#include "tokenizer/template/render.h"
#include "tokenizer/template/syntax.h"

namespace sluice::tokenizer {

Template::Template(std::string_view source, std::string name, const TemplateLimits& limits)
    : name_(std::move(name)),
      source_(source),
      limits_(limits),
      syntax_(std::make_unique<const jinja::Syntax>(jinja::parse_template(source_, name_, limits_))) {}

Template::Template(Template&&) noexcept = default;
Template& Template::operator=(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::parse(std::string_view source, std::string name, const TemplateLimits& limits) {
  return Template(source, std::move(name), limits);
}

MarkedText Template::render(const jinja::Dict& variables, const RenderOptions& options) const {
  jinja::Meter meter(limits_);
  return jinja::Render(*syntax_, name_, variables, options.now, meter).run();
}

}  // namespace sluice::tokenizer
