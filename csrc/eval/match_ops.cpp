// Owns: micro-ops of `match`.
#include "eval/activation.h"

namespace graphlift::eval {

Flow do_GetLen(Activation& a, int) { return a.push_result(a.semantics.length(a.peek(1))); }

Flow do_MatchMapping(Activation& a, int) {
  const int is = a.semantics.match_is(a.peek(1), true);
  return is < 0 ? Flow::Error : a.push_result(boolean(is));
}

Flow do_MatchSequence(Activation& a, int) {
  const int is = a.semantics.match_is(a.peek(1), false);
  return is < 0 ? Flow::Error : a.push_result(boolean(is));
}

Flow do_MatchKeys(Activation& a, int) { return a.push_result(a.semantics.match_keys(a.peek(2), a.peek(1))); }

Flow do_MatchClass(Activation& a, int positional) {
  return a.replace(3, a.semantics.match_class(a.peek(3), a.peek(2), positional, a.peek(1)));
}

}  // namespace graphlift::eval
