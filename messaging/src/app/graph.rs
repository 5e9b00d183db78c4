//! The graph of providers, checked as a whole before anything is built.

use std::collections::{HashMap, HashSet};

use super::injectable::{Key, Lifetime};
use super::provider::{Make, Provider};
use crate::violation::{Violation, ViolationKind};

/// Something that a plugin will ask the container for.
#[derive(Clone, Debug)]
pub struct Requirement {
    /// Who asks, for messages: `OrderConsumer::on_created`.
    pub who: String,
    /// What is asked for.
    pub key: Key,
    /// Whether it is asked for once, or in every scope.
    pub lifetime: Lifetime,
}

/// The providers that count, by what they provide.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    nodes: HashMap<Key, Provider>,
    /// In the order they were added, so that reports and construction do not depend on hashing.
    order: Vec<Key>,
}

const REQUEST_FIX: &str = "make it live as long as what it needs: `#[injectable(scope = \"request\")]`, `.per_request()`, or for a consumer `scope = \"request\"`";

impl Graph {
    /// Puts replacements in place and drops fallbacks that are not needed; reports what is there twice or replaces nothing.
    pub(crate) fn new(providers: Vec<Provider>, replacements: Vec<Provider>, violations: &mut Vec<Violation>) -> Self {
        let mut graph = Self::default();
        let (fallbacks, explicit): (Vec<_>, Vec<_>) = providers.into_iter().partition(|provider| provider.fallback);
        for provider in explicit {
            if graph.nodes.contains_key(&provider.key) {
                violations.push(graph_violation(
                    provider.key,
                    "is provided twice",
                    "keep one of the two; a test puts its own in place with `.replace(…)`",
                ));
            }
            graph.insert(provider);
        }
        for provider in fallbacks {
            if !graph.nodes.contains_key(&provider.key) {
                graph.insert(provider);
            }
        }
        for replacement in replacements {
            if !graph.nodes.contains_key(&replacement.key) {
                violations.push(graph_violation(
                    replacement.key,
                    "is replaced, and nothing provides it",
                    "provide it, or drop the `.replace(…)`; the type must be the one that is provided, such as `dyn Trait`",
                ));
            }
            graph.insert(replacement);
        }
        graph
    }

    fn insert(&mut self, provider: Provider) {
        let key = provider.key;
        if self.nodes.insert(key, provider).is_none() {
            self.order.push(key);
        }
    }

    pub(crate) fn get(&self, key: Key) -> Option<&Provider> {
        self.nodes.get(&key)
    }

    /// The provider that makes the instance: the end of a chain of aliases.
    pub(crate) fn source(&self, key: Key) -> Option<&Provider> {
        let mut provider = self.get(key)?;
        // A chain longer than the graph is a cycle, which the check reports.
        for _ in 0..self.nodes.len() {
            match provider.make {
                Make::Alias(_) => provider = self.get(*provider.dependencies.first()?)?,
                Make::Value(_) | Make::Now(_) | Make::Later(_) | Make::External => return Some(provider),
            }
        }
        None
    }

    pub(crate) fn lifetime(&self, key: Key) -> Option<Lifetime> {
        self.source(key).map(|provider| provider.lifetime)
    }

    /// What must exist before `roots` can: dependencies first, each once.
    pub(crate) fn closure(&self, roots: impl IntoIterator<Item = Key>) -> Vec<Key> {
        let mut order = Vec::new();
        let mut seen = HashSet::new();
        for root in roots {
            self.visit(root, &mut seen, &mut order);
        }
        order
    }

    fn visit(&self, key: Key, seen: &mut HashSet<Key>, order: &mut Vec<Key>) {
        if !seen.insert(key) {
            return;
        }
        if let Some(provider) = self.get(key) {
            for dependency in &provider.dependencies {
                self.visit(*dependency, seen, order);
            }
            order.push(key);
        }
    }

    /// Reports whatever is missing, circular or captive.
    pub(crate) fn check(&self, requirements: &[Requirement], violations: &mut Vec<Violation>) {
        let roots = self.order.iter().copied().filter(|key| self.get(*key).is_some_and(|provider| !provider.fallback));
        let reachable = self.closure(roots.chain(requirements.iter().map(|requirement| requirement.key)));
        self.check_missing(&reachable, requirements, violations);
        self.check_cycles(&reachable, violations);
        for key in &reachable {
            self.check_captives(*key, violations);
        }
        for requirement in requirements.iter().filter(|requirement| requirement.lifetime == Lifetime::Singleton) {
            if self.lifetime(requirement.key) == Some(Lifetime::Request) {
                violations.push(
                    Violation::new(
                        ViolationKind::Graph,
                        format!(
                            "lives as long as the application and needs {}, which lives for one delivery",
                            requirement.key
                        ),
                        REQUEST_FIX,
                    )
                    .subject(requirement.who.clone()),
                );
            }
        }
    }

    fn check_missing(&self, reachable: &[Key], requirements: &[Requirement], violations: &mut Vec<Violation>) {
        let mut missing: Vec<(Key, Vec<String>)> = Vec::new();
        let mut note = |key: Key, who: String| match missing.iter_mut().find(|(known, _)| *known == key) {
            Some((_, needed)) => needed.push(who),
            None => missing.push((key, vec![who])),
        };
        for key in reachable {
            for dependency in self.get(*key).map(|provider| &*provider.dependencies).unwrap_or_default() {
                if self.get(*dependency).is_none() {
                    note(*dependency, key.to_string());
                }
            }
        }
        for requirement in requirements.iter().filter(|requirement| self.get(requirement.key).is_none()) {
            note(requirement.key, requirement.who.clone());
        }
        for (key, needed) in missing {
            violations.push(graph_violation(
                key,
                &format!("is needed by {}, and nothing provides it", needed.join(", ")),
                "add `.provide::<…>()`, `.value(…)`, `.factory(…)` or, for a trait, `.bind(…)`",
            ));
        }
    }

    fn check_cycles(&self, reachable: &[Key], violations: &mut Vec<Violation>) {
        let mut done = HashSet::new();
        for key in reachable {
            let mut path = Vec::new();
            self.find_cycle(*key, &mut path, &mut done, violations);
        }
    }

    fn find_cycle(&self, key: Key, path: &mut Vec<Key>, done: &mut HashSet<Key>, violations: &mut Vec<Violation>) {
        if let Some(start) = path.iter().position(|known| *known == key) {
            let circle: Vec<_> = path[start..].iter().chain([&key]).map(Key::to_string).collect();
            violations.push(graph_violation(
                key,
                &format!("needs itself: {}", circle.join(" → ")),
                "break the circle: let one of them take what it needs as an argument, or split it",
            ));
            return;
        }
        if done.contains(&key) {
            return;
        }
        path.push(key);
        for dependency in self.get(key).map(|provider| &*provider.dependencies).unwrap_or_default() {
            self.find_cycle(*dependency, path, done, violations);
        }
        path.pop();
        done.insert(key);
    }

    fn check_captives(&self, key: Key, violations: &mut Vec<Violation>) {
        let Some(provider) = self.get(key).filter(|provider| provider.lifetime == Lifetime::Singleton) else { return };
        if matches!(provider.make, Make::Alias(_)) {
            return;
        }
        for dependency in &provider.dependencies {
            if self.lifetime(*dependency) == Some(Lifetime::Request) {
                violations.push(graph_violation(
                    key,
                    &format!("lives as long as the application and needs {dependency}, which lives for one delivery"),
                    REQUEST_FIX,
                ));
            }
        }
    }
}

fn graph_violation(key: Key, problem: &str, fix: &str) -> Violation {
    Violation::new(ViolationKind::Graph, problem, fix).subject(key.to_string())
}
