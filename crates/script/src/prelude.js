// What every script finds: `mc`, `XML`, and a few methods of Java's strings. The value is a function that takes out of
// the global object what a script has left there; it answers false when something cannot be taken out.
(function (native, shared) {
  'use strict';
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, freeze, hasOwn } = Object;
  const { apply, ownKeys } = Reflect;
  const { parse, stringify } = JSON;

  // XML, as E4X has it. A value is a proxy around a function, so that `x.name` is the child and `x.name()` the method.

  const LIST = Symbol('list');
  const listOf = value => (typeof value === 'function' ? value[LIST] : undefined);
  const asList = value => {
    const list = listOf(value);
    if (list !== undefined) return list;
    if (value === null || value === undefined) throw new TypeError('there is no XML: the value is ' + value);
    return native.xmlParse(String(value));
  };
  /** A list and no text, or no list and a text. */
  const given = value => {
    const list = listOf(value);
    return list !== undefined ? [list, ''] : [-1, String(value)];
  };
  const xml = (list, owner, key, axiom = false) => {
    const target = () => {};
    target.list = list;
    target.owner = owner;
    target.key = key;
    target.axiom = axiom;
    return new Proxy(target, traps);
  };
  /** An element as Axiom has it, such as that of a property: as a text it is its markup, where E4X has its content. */
  const axiom = list => xml(list, undefined, undefined, true);
  const items = list => Array.from({ length: native.xmlLength(list) }, (_, at) => xml(native.xmlGet(list, String(at))));
  const nameKey = (name, prefix) => {
    const text = String(name);
    if (name instanceof QName) return prefix + '{' + name.uri + '}' + name.localName;
    return prefix + text;
  };
  const find = (list, name, prefix) => xml(native.xmlGet(list, nameKey(name === undefined ? '*' : name, prefix)));
  /** What Axiom and the DOM answer with null where there is nothing. */
  const orNull = list => (native.xmlLength(list) === 0 ? null : xml(list));
  const first = list => orNull(native.xmlGet(native.xmlStep(list, 'elements'), '0'));

  const methods = {
    __proto__: null,
    toString: list => native.xmlText(list),
    toXMLString: list => native.xmlMarkup(list),
    toJSON: list => native.xmlText(list),
    valueOf: list => xml(list),
    length: list => native.xmlLength(list),
    text: list => xml(native.xmlStep(list, 'text')),
    comments: list => xml(native.xmlStep(list, 'comment')),
    children: list => xml(native.xmlStep(list, 'children')),
    parent: list => xml(native.xmlStep(list, 'parent')),
    elements: (list, name) => (name === undefined ? xml(native.xmlStep(list, 'elements')) : find(list, name, '')),
    child: (list, name) => find(list, name, ''),
    attribute: (list, name) => find(list, name, '@'),
    attributes: list => xml(native.xmlGet(list, '@*')),
    descendants: (list, name) => find(list, name, '..'),
    copy: list => xml(native.xmlCopy(list)),
    name: list => native.xmlFact(list, 'name'),
    localName: list => native.xmlFact(list, 'local'),
    namespace: list => new Namespace(native.xmlFact(list, 'prefix'), native.xmlFact(list, 'namespace')),
    nodeKind: list => native.xmlFact(list, 'kind'),
    hasSimpleContent: list => native.xmlSimple(list),
    hasComplexContent: list => !native.xmlSimple(list),
    appendChild: (list, value) => (native.xmlInsert(list, 'append', ...given(value)), xml(list)),
    prependChild: (list, value) => (native.xmlInsert(list, 'prepend', ...given(value)), xml(list)),
    setChildren: (list, value) => (native.xmlInsert(list, 'set', ...given(value)), xml(list)),
    replace: (list, name, value) => (native.xmlSet(list, nameKey(name, ''), ...given(value)), xml(list)),
    setLocalName: (list, name) => native.xmlRename(list, String(name)),
    // A filter, `x.(…)`.
    '()': (list, holds) => {
      const kept = items(list).map((item, at) => (holds(item) ? at : -1)).filter(at => at >= 0);
      return xml(native.xmlPick(list, kept.join()));
    },
    contains: (list, value) => items(list).some(item => native.xmlMarkup(listOf(item)) === native.xmlMarkup(asList(value))),
    normalize: list => xml(list),
    // What scripts for the other engines of WSO2 call: Axiom's and the DOM's names.
    // Of an element the texts directly in it; the DOM's has those of its descendants too.
    getText: list => native.xmlString(native.xmlFact(list, 'kind') === 'element' ? native.xmlStep(list, 'text') : list),
    getTextContent: list => native.xmlString(list),
    getLocalName: list => native.xmlFact(list, 'local'),
    getNodeName: list => native.xmlFact(list, 'qname'),
    getFirstElement: first,
    getFirstChild: list => orNull(native.xmlGet(native.xmlStep(list, 'children'), '0')),
    getDocumentElement: list => xml(list),
    getTagName: list => native.xmlFact(list, 'qname'),
    hasChildNodes: list => native.xmlLength(native.xmlStep(list, 'children')) > 0,
    getChildNodes: list => xml(native.xmlStep(list, 'children')),
    getElementsByTagName: (list, name) => find(list, String(name).replace(/^.*:/, ''), '..*::'),
    getFirstChildWithName: (list, name) => orNull(native.xmlGet(native.xmlGet(list, nameKey(name, '')), '0')),
    getChildrenWithName: (list, name) => find(list, name, ''),
    // With a QName these are Axiom's, with a text the DOM's.
    getAttribute(list, name) {
      const found = native.xmlGet(list, nameKey(name, '@'));
      return name instanceof QName ? orNull(found) : native.xmlText(found);
    },
    getAttributeValue(list, name) {
      if (name === undefined) return native.xmlText(list);
      const found = native.xmlGet(list, nameKey(name, '@'));
      return name instanceof QName && native.xmlLength(found) === 0 ? null : native.xmlText(found);
    },
    setText: (list, text) => native.xmlInsert(list, 'set', -1, String(text)),
    setTextContent: (list, text) => native.xmlInsert(list, 'set', -1, String(text)),
    getLength: list => native.xmlLength(list),
    item: (list, at) => xml(native.xmlGet(list, String(at))),
    getBody: list => find(list, 'Body', '*::'),
    getHeader: list => find(list, 'Header', '*::'),
    getFirstOMChild: list => methods.getFirstChild(list),
    getNamespaceURI: list => native.xmlFact(list, 'namespace'),
    getQName: list => new QName(native.xmlFact(list, 'namespace'), native.xmlFact(list, 'local')),
    getParent: list => methods.parent(list),
    getChildElements: list => methods.elements(list),
    getChildren: list => methods.children(list),
    addChild: (list, value) => void methods.appendChild(list, value),
    addAttribute: (list, name, value) => void native.xmlSet(list, nameKey(name, '@'), -1, String(value)),
    removeAttribute: (list, name) =>
      void (listOf(name) === undefined ? native.xmlDelete(list, nameKey(name, '@')) : native.xmlDetach(listOf(name))),
    getAllAttributes: list => methods.attributes(list),
    getChildrenWithLocalName: (list, name) => find(list, name, '*::'),
    getNextOMSibling: list => orNull(native.xmlStep(list, 'next')),
    getPreviousOMSibling: list => orNull(native.xmlStep(list, 'previous')),
    getNextSibling: list => orNull(native.xmlStep(list, 'next')),
    getPreviousSibling: list => orNull(native.xmlStep(list, 'previous')),
    getParentNode: list => methods.parent(list),
    insertSiblingAfter: (list, value) => void native.xmlBeside(list, false, ...given(value)),
    insertSiblingBefore: (list, value) => void native.xmlBeside(list, true, ...given(value)),
    detach: list => (native.xmlDetach(list), xml(list)),
    discard: list => void native.xmlDetach(list),
    removeChildren: list => void native.xmlInsert(list, 'set', -1, ''),
    getNamespace: list => methods.namespace(list),
    cloneOMElement: list => methods.copy(list),
    toStringWithConsume: list => native.xmlMarkup(list),
    hasFault: list => native.xmlLength(native.xmlGet(list, '*::Fault')) > 0,
    getFault: list => find(list, 'Fault', '*::'),
    // A list is its own iterator, as Axiom answers with one.
    hasNext(list) {
      return (passed.get(this) ?? 0) < native.xmlLength(list);
    },
    next(list) {
      const at = passed.get(this) ?? 0;
      if (at >= native.xmlLength(list)) throw new TypeError('there is no further element');
      passed.set(this, at + 1);
      return xml(native.xmlGet(list, String(at)));
    },
    // Whether a text stands for bytes is decided by the message type it leaves with.
    setBinary: () => undefined,
    setOptimize: () => undefined,
    // Axiom reads its trees step by step; here they are whole.
    build: () => undefined,
    buildWithAttachments: () => undefined,
    buildNext: () => undefined,
    isComplete: () => true,
    close: () => undefined,
  };
  /** How many of its items a list has given by `next`. */
  const passed = new WeakMap();

  const traps = {
    __proto__: null,
    get(target, key) {
      if (typeof key === 'symbol') {
        if (key === LIST) return target.list;
        if (key === Symbol.toPrimitive) {
          return () => (target.axiom ? native.xmlMarkup(target.list) : native.xmlText(target.list));
        }
        if (key === Symbol.iterator) return () => items(target.list)[Symbol.iterator]();
        return undefined;
      }
      return xml(native.xmlGet(target.list, key), target, key);
    },
    set(target, key, value) {
      if (typeof key === 'symbol') return false;
      native.xmlSet(target.list, key, ...given(value));
      return true;
    },
    has: (target, key) => typeof key === 'string' && native.xmlLength(native.xmlGet(target.list, key)) > 0,
    deleteProperty(target, key) {
      if (typeof key === 'string') native.xmlDelete(target.list, key);
      return true;
    },
    defineProperty: () => false,
    setPrototypeOf: () => false,
    ownKeys: target => items(target.list).map((_, at) => String(at)),
    getOwnPropertyDescriptor: (target, key) =>
      typeof key === 'string' && /^[0-9]+$/.test(key) && Number(key) < native.xmlLength(target.list)
        ? { value: xml(native.xmlGet(target.list, key)), enumerable: true, configurable: true, writable: true }
        : undefined,
    apply(target, self, given) {
      const { owner, key } = target;
      const method = methods[key];
      if (owner === undefined || !method) throw new TypeError('XML has no method `' + key + '`');
      if (owner.axiom && key === 'toString') return native.xmlMarkup(owner.list);
      const result = method.call(self, owner.list, ...given);
      const list = owner.axiom ? listOf(result) : undefined;
      return list === undefined ? result : axiom(list);
    },
    construct() {
      throw new TypeError('XML is no constructor');
    },
  };

  function XML(value) {
    return value === undefined ? xml(native.xmlEmpty()) : xml(native.xmlCopy(asList(value)));
  }
  XML.each = value => (listOf(value) !== undefined ? items(listOf(value)) : Object.values(value));
  /** `a + b`: a list where both are XML, else what JavaScript adds. */
  XML.joined = (left, right) => {
    const [one, other] = [listOf(left), listOf(right)];
    return one === undefined || other === undefined ? left + right : xml(native.xmlJoin(one, other));
  };
  /** A name in a filter: a child of the item, else a variable, else nothing. */
  XML.named = (item, name, variable) => {
    const child = item[name];
    if (native.xmlLength(listOf(child)) > 0) return child;
    try {
      return variable();
    } catch {
      return child;
    }
  };
  /** A function in a filter: the script's own, or the language's; else a method of the item. */
  XML.called = (item, name, variable) => {
    try {
      const found = variable();
      if (typeof found === 'function' && listOf(found) === undefined && found !== Object.prototype[name]) return found;
    } catch {
      // There is no such variable.
    }
    return item[name];
  };
  /** What stands in the place of E4X that cannot be had. */
  XML.refused = why => {
    throw new TypeError(why);
  };
  XML.qualified = (namespace, local, prefix) =>
    prefix + '{' + (namespace instanceof Namespace ? namespace.uri : String(namespace)) + '}' + local;
  XML.literal = (strings, ...values) => {
    let text = strings.raw.length ? strings[0] : '';
    values.forEach((value, at) => {
      const inTag = text.lastIndexOf('<') > text.lastIndexOf('>');
      const inAttribute = inTag && /=\s*$/.test(text);
      const list = listOf(value);
      if (inAttribute) {
        text += '"' + escape(list === undefined ? String(value) : native.xmlString(list)) + '"';
      } else if (inTag) {
        text += String(value);
      } else {
        text += list === undefined ? escape(String(value === undefined || value === null ? '' : value)) : native.xmlMarkup(list);
      }
      text += strings[at + 1];
    });
    if (text.startsWith('<>')) text = text.slice(2, -3);
    return text.trim() === '' ? xml(native.xmlEmpty()) : xml(native.xmlParse(text));
  };
  const escape = text =>
    text.replace(/[<>&"\r]/g, c => ({ '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;', '\r': '&#13;' })[c]);

  function XMLList(value) {
    return XML(value);
  }
  function Namespace(prefix, uri) {
    if (!new.target) return new Namespace(prefix, uri);
    this.uri = String(uri === undefined ? (prefix === undefined ? '' : prefix) : uri);
    this.prefix = uri === undefined ? '' : String(prefix);
  }
  Namespace.prototype.toString = function () {
    return this.uri;
  };
  Namespace.prototype.getNamespaceURI = function () {
    return this.uri;
  };
  Namespace.prototype.getPrefix = function () {
    return this.prefix;
  };
  function QName(namespace, local) {
    if (!new.target) return new QName(namespace, local);
    this.uri = local === undefined ? '' : String(namespace);
    this.localName = String(local === undefined ? namespace : local);
  }
  QName.prototype.toString = function () {
    return this.uri === '' ? this.localName : this.uri + '::' + this.localName;
  };
  QName.prototype.getLocalPart = function () {
    return this.localName;
  };
  QName.prototype.getNamespaceURI = function () {
    return this.uri;
  };

  // What the classes of Java that are about XML are made of.
  native.QName = QName;
  native.axiom = text => axiom(native.xmlParse(text));
  native.listOf = asList;
  native.itemsOf = ([, list]) => items(list).map(item => (native.xmlFact(listOf(item), 'kind') === 'element' ? axiom(listOf(item)) : item));

  // The message.

  const { Packages } = globalThis;
  const back = value => {
    if (!Array.isArray(value)) return value;
    return value[0] === 'xml' ? xml(value[1]) : element(parse(value[1]));
  };
  /** What the bus keeps under a name: an element is one of Axiom there. */
  const stored = value => (Array.isArray(value) && value[0] === 'xml' ? axiom(value[1]) : back(value));
  /** A JSON value with its text as that of an element of Gson: `JSON.parse(mc.getProperty('saved'))`. */
  const element = value => {
    if (value !== null && typeof value === 'object' && !hasOwn(value, 'toString')) {
      const toString = () => stringify(value);
      defineProperty(value, 'toString', { value: toString, writable: true, configurable: true });
    }
    return value;
  };
  /** The kind and the content of a value, as the bus keeps it. */
  const kept = value => {
    const list = listOf(value);
    if (list !== undefined) return ['xml', list];
    if (value !== null && typeof value === 'object' && !(value instanceof Date)) {
      if (value instanceof EndpointReference) return ['text', value.getAddress()];
      // Objects of Java that stand for a text: a UUID, a StringBuilder, a Date.
      if (typeof value.toJSON === 'function' && typeof value.toJSON() !== 'object') return ['text', String(value)];
      return value instanceof String || value instanceof Number || value instanceof Boolean
        ? ['text', value.valueOf()]
        : ['json', stringify(value)];
    }
    return ['text', value === null || ['number', 'boolean', 'undefined'].includes(typeof value) ? value : String(value)];
  };
  const scopeOf = scope => (scope === undefined || scope === null ? 'default' : String(scope));

  function EndpointReference(address) {
    if (!new.target) return new EndpointReference(address);
    const own = String(address);
    this.getAddress = () => own;
    this.toString = () => own;
  }
  const reference = text => (text === null || text === undefined ? null : new EndpointReference(text));

  const log = {};
  for (const level of ['trace', 'debug', 'info', 'warn', 'error']) {
    log[level] = text => native.log(level, String(text));
    log['is' + level[0].toUpperCase() + level.slice(1) + 'Enabled'] = () => true;
  }
  log.fatal = text => native.log('error', String(text));

  /** Names, with what a set of Java has. */
  const keySet = names => {
    const own = {
      contains: name => names.includes(String(name)),
      size: () => names.length,
      isEmpty: () => names.length === 0,
      toArray: () => names.slice(),
      iterator: () => {
        let at = 0;
        return { hasNext: () => at < names.length, next: () => names[at++] };
      },
    };
    for (const name of ownKeys(own)) defineProperty(names, name, { value: own[name] });
    return names;
  };

  const mc = {
    getPayloadXML: () => back(native.payload()),
    setPayloadXML: value => native.setPayload(asList(value)),
    getPayloadJSON() {
      const text = native.json();
      return text === null || text === undefined ? {} : parse(text);
    },
    setPayloadJSON: value => native.setJson(value === null || value === undefined ? '' : stringify(value) || '', true),
    getJsonText() {
      const text = native.json();
      return text === null || text === undefined ? '{}' : text;
    },
    setJsonText: (message, text) => native.setJson(String(text === undefined ? message : text), false),
    getPayloadText() {
      const text = native.json();
      return text === null || text === undefined ? native.xmlMarkup(native.envelope()[1]) : text;
    },
    getEnvelopeXML: () => back(native.envelope()),
    // What is changed in it is changed in the message.
    getEnvelope: () => stored(native.ownEnvelope()),
    setEnvelope: value => native.setEnvelope(asList(value)),
    addHeader: (must, value) => native.addHeader(Boolean(must), asList(value)),
    getProperty: (name, scope) => stored(native.get(scopeOf(scope), String(name))),
    setProperty: (name, value, scope) => native.set(scopeOf(scope), String(name), ...kept(value)),
    removeProperty: (name, scope) => native.remove(scopeOf(scope), String(name)),
    getPropertyKeySet: () => keySet(native.names('default')),
    getVariable: name => stored(native.get('variable', String(name))),
    setVariable: (name, value) => native.set('variable', String(name), ...kept(value)),
    removeVariable: name => native.remove('variable', String(name)),
    getVariableKeySet: () => keySet(native.names('variable')),
    getEntry: key => stored(native.entry(String(key))),
    getLocalEntry: key => stored(native.entry(String(key))),
    getServiceLog: () => log,
    getLog: () => log,
    parseXml: text => axiom(native.xmlParse(String(text))),
    getXpathResult: source => new Packages.org.apache.axiom.om.xpath.AXIOMXPath(source),
    getTracingState: () => 2,
    setTracingState: () => undefined,
    getFaultStack: () => [],
  };
  for (const what of ['To', 'From', 'ReplyTo', 'FaultTo']) {
    mc['get' + what] = () => reference(native.text(what));
    mc['set' + what] = value => native.setText(what, value === null || value === undefined ? null : String(value));
  }
  for (const what of ['WSAAction', 'SoapAction', 'MessageID', 'WSAMessageID', 'RelatesTo']) {
    mc['get' + what] = () => native.text(what);
    mc['set' + what] = value => native.setText(what, value === null || value === undefined ? null : String(value));
  }
  for (const what of ['Response', 'FaultResponse', 'DoingPOX', 'DoingGET', 'DoingMTOM', 'DoingSWA']) {
    mc['is' + what] = () => native.flag(what);
    mc['set' + what] = value => native.setFlag(what, Boolean(value));
  }
  mc.isSOAP11 = () => native.flag('SOAP11');
  freeze(mc);
  freeze(log);
  const known = Object.keys(mc);
  const message = new Proxy(mc, {
    get(target, key) {
      if (typeof key === 'symbol' || key in target) return target[key];
      if (/^(get(Sequence|Endpoint|SequenceTemplate|MainSequence|FaultSequence|Configuration|Environment)|pushFaultHandler|getParsedOMElement)$/.test(key)) {
        throw new TypeError('`mc.' + key + '` is not available here');
      }
      throw new TypeError('`mc.' + key + '` does not exist here');
    },
    set(target, key) {
      throw new TypeError('`mc.' + String(key) + '` cannot be set; there are ' + known.join(', '));
    },
  });

  const print = (...values) => native.log('info', values.join(' '));
  const globals = { mc: message, XML, XMLList, Namespace, QName, EndpointReference, print };
  for (const name of ownKeys(globals)) {
    defineProperty(globalThis, name, { value: globals[name], writable: true, configurable: true, enumerable: false });
  }

  // Methods of arrays run through all of the length that they find, holes too, and nothing interrupts them meanwhile: a number of a message
  // (`Array(n + 1).join('x')`) would hold its thread for minutes.
  const MOST = 2 ** 25;
  const check = value => {
    if (value?.length > MOST) throw new RangeError('an array has more than ' + MOST + ' elements');
  };
  const methodsOfArrays = [
    'concat', 'copyWithin', 'every', 'fill', 'filter', 'flat', 'flatMap', 'forEach', 'includes', 'indexOf', 'join', 'lastIndexOf', 'map',
    'reduce', 'reduceRight', 'reverse', 'shift', 'slice', 'some', 'sort', 'splice', 'toLocaleString', 'unshift',
  ];
  for (const name of methodsOfArrays) {
    const method = Array.prototype[name];
    const bounded = {
      [name](...given) {
        check(this);
        if (name === 'concat') for (const value of given) check(value);
        return apply(method, this, given);
      },
    }[name];
    defineProperty(Array.prototype, name, { value: bounded, writable: true, configurable: true, enumerable: false });
  }

  if (!shared) return () => true;

  // A world that messages share must not change. Everything built in is frozen; what objects inherit and scripts
  // assign on their own objects (`o.toString = …`) is made a pair of accessors that define it there.

  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;
  const open = prototype => {
    for (const key of ownKeys(prototype)) {
      const { value, configurable, writable } = getOwnPropertyDescriptor(prototype, key);
      if (!configurable || !writable) continue;
      defineProperty(prototype, key, {
        get: () => value,
        set(replacement) {
          if (this === prototype) throw new TypeError('`' + String(key) + '` of a built-in object cannot be changed');
          defineProperty(this, key, { value: replacement, writable: true, configurable: true, enumerable: true });
        },
        configurable: true,
        enumerable: false,
      });
    }
  };
  const errors = [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError];
  const hidden = [
    (function* () {})(), (async function* () {})(), async function () {}, function* () {}, async function* () {},
    [][Symbol.iterator](), ''[Symbol.iterator](), new Map()[Symbol.iterator](), new Set()[Symbol.iterator](),
    ''.matchAll(/x/g), /x/, new Date(), () => {}, Symbol.prototype, [].values().map(x => x), Iterator.from({ next() {} }),
  ];
  const seen = new Set();
  const waiting = [globalThis, ...hidden, message, traps, methods, native];
  const reach = value => {
    if ((typeof value === 'object' && value !== null) || typeof value === 'function') {
      if (!seen.has(value)) {
        seen.add(value);
        waiting.push(value);
      }
    }
  };
  while (waiting.length > 0) {
    const object = waiting.pop();
    seen.add(object);
    reach(getPrototypeOf(object));
    for (const key of ownKeys(object)) {
      const property = getOwnPropertyDescriptor(object, key);
      if (!property) continue;
      reach(property.value);
      reach(property.get);
      reach(property.set);
    }
  }
  for (const prototype of [Object.prototype, Function.prototype, ...errors.map(error => error.prototype)]) open(prototype);
  for (const object of seen) {
    if (object !== globalThis) freeze(object);
  }
  for (const key of ownKeys(globalThis)) {
    defineProperty(globalThis, key, { configurable: false });
    if ('value' in getOwnPropertyDescriptor(globalThis, key)) defineProperty(globalThis, key, { writable: false });
  }
  const own = new Set(ownKeys(globalThis));
  const has = Set.prototype.has.bind(own);
  return () => {
    const keys = ownKeys(globalThis);
    if (keys.length === own.size) return true;
    for (const key of keys) {
      if (!has(key) && !delete globalThis[key]) return false;
    }
    return true;
  };
})
