// A parsed template.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/template/place.h"
#include "tokenizer/template/value.h"

namespace sluice::tokenizer::jinja {

using NameId = std::uint32_t;  // index into Syntax::names

enum class Operator {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kNegate,
  kPlus,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kNotIn
};

struct Expression;
using ExpressionPtr = std::unique_ptr<Expression>;

struct Expression {
  enum class Kind {
    kConstant,   // constant
    kName,       // name_id
    kList,       // parts
    kTuple,      // parts
    kDict,       // parts: key, value, key, value, …
    kAttribute,  // parts[0] . name
    kItem,       // parts[0] [ parts[1] ]
    kSlice,      // parts[0] [ parts[1] : parts[2] : parts[3] ]; null where left out
    kCall,       // parts[0] ( parts[1…], named )
    kFilter,     // parts[0] | name ( parts[1…], named ); parts[0] null: the block that is filtered
    kTest,       // parts[0] is name ( parts[1…], named )
    kUnary,      // operators[0] parts[0]
    kBinary,     // parts[0] operators[0] parts[1]
    kCompare,    // parts[0] operators[0] parts[1] operators[1] parts[2] …
    kConcat,     // parts, joined by ~
    kAnd,
    kOr,   // parts[0], parts[1]
    kNot,  // parts[0]
    kIf    // parts[0] if parts[1] else parts[2]; the last is null without `else`
  };
  Kind kind = Kind::kConstant;
  Place place;
  unsigned height = 1;  // height of the tree below it
  NameId name_id = 0;
  std::string name;
  Value constant;
  std::vector<ExpressionPtr> parts;
  std::vector<std::pair<std::string, ExpressionPtr>> named;
  std::vector<Operator> operators;
};

// What `set` and `for` assign to.
struct Target {
  enum class Kind { kName, kAttribute, kTuple } kind = Kind::kName;
  Place place;
  NameId name_id = 0;
  std::string attribute;  // a namespace's
  std::vector<Target> parts;
};

struct Statement;
using Block = std::vector<Statement>;

struct Branch {
  ExpressionPtr condition;  // null: else
  Block body;
};

struct Parameter {
  NameId name_id = 0;
  ExpressionPtr fallback;  // null: none
};

struct Statement {
  enum class Kind {
    kText,         // value is a constant
    kOutput,       // value
    kIf,           // branches
    kFor,          // target, value, condition; body, otherwise
    kSet,          // target, value
    kSetBlock,     // target, body; value is a filter or null
    kMacro,        // name_id, parameters, body
    kFilterBlock,  // value, body
    kScope,        // body; targets and values of `with`
    kBreak,
    kContinue
  };
  Kind kind = Kind::kText;
  Place place;
  ExpressionPtr value, condition;
  Target target;
  std::vector<Branch> branches;
  Block body, otherwise;
  NameId name_id = 0;
  std::string name;
  std::vector<Parameter> parameters;
  bool takes_varargs = false, takes_kwargs = false;  // the macro's body names them
  std::vector<std::pair<Target, ExpressionPtr>> with;
};

struct Syntax {
  std::vector<std::string> names;
  Block body;
};

}  // namespace sluice::tokenizer::jinja
