// The names of XML of Java, and the classes of Axiom that scripts use.

class JavaQName extends native.QName {
  constructor(namespace, local, prefix) {
    if (local === undefined) super(namespace);
    else super(namespace === null ? '' : namespace, local);
    this.prefix = prefix === undefined ? '' : String(prefix);
  }
  static valueOf(text) {
    const found = /^\{(.*?)\}(.*)$/.exec(String(text));
    return found === null ? new JavaQName(text) : new JavaQName(found[1], found[2]);
  }
  getPrefix() { return this.prefix; }
  equals(other) { return other instanceof native.QName && other.uri === this.uri && other.localName === this.localName; }
  hashCode() { return hash(this.toString()); }
  toString() { return this.uri === '' ? this.localName : '{' + this.uri + '}' + this.localName; }
}
// The last argument is the text; a factory may stand before it.
const AXIOMUtil = { stringToOM: (...given) => native.axiom(String(given[given.length - 1])) };
/** An XPath 1.0 expression; the prefixes in it are those that it is given, and those of an element that it is made with. */
class AXIOMXPath {
  constructor(...given) {
    this.source = String(given[given.length - 1]);
    this.names = {};
    native.xpath(0, 'syntax', this.source, []);
    if (given.length > 1) {
      const space = given[0].namespace();
      if (space.getPrefix() !== '') this.addNamespace(space.getPrefix(), space.getNamespaceURI());
    }
  }
  addNamespace(prefix, uri) { this.names[String(prefix)] = String(uri); }
  ask(how, context) {
    return native.xpath(native.listOf(context), how, this.source, Object.entries(this.names).flat());
  }
  selectNodes(context) { return new ArrayList(native.itemsOf(this.ask('nodes', context))); }
  selectSingleNode(context) { return native.itemsOf(this.ask('nodes', context))[0] || null; }
  stringValueOf(context) { return this.ask('string', context); }
  valueOf(context) { return context === undefined ? this.source : this.ask('string', context); }
  numberValueOf(context) { return this.ask('number', context); }
  booleanValueOf(context) { return this.ask('boolean', context); }
  evaluate(context) {
    const value = this.ask('value', context);
    return Array.isArray(value) ? new ArrayList(native.itemsOf(value)) : value;
  }
  toString() { return this.source; }
}

class OMNamespace {
  constructor(uri, prefix) {
    this.uri = uri === null || uri === undefined ? '' : String(uri);
    this.prefix = prefix === null || prefix === undefined ? '' : String(prefix);
  }
  getNamespaceURI() { return this.uri; }
  getName() { return this.uri; }
  getPrefix() { return this.prefix; }
}
const inAttribute = text => String(text).replace(/[<&"]/g, c => ({ '<': '&lt;', '&': '&amp;', '"': '&quot;' })[c]);
const factory = {
  createOMNamespace: (uri, prefix) => new OMNamespace(uri, prefix),
  createOMElement(name, space, last) {
    // A name with its namespace and perhaps a parent; or a local name, and the namespace as an object or as its name and prefix.
    const whole = name instanceof native.QName;
    const own = whole ? new OMNamespace(name.uri, name.prefix) : typeof space === 'string' ? new OMNamespace(space, last) : space || new OMNamespace('', '');
    const prefix = own.getPrefix();
    const qname = (prefix === '' ? '' : prefix + ':') + (whole ? name.localName : String(name));
    if (!/^[^\s<>"'=/&]+$/.test(qname)) fail('IllegalArgumentException', 'no name of an element: ' + qname);
    const uri = own.getNamespaceURI();
    const element = native.axiom('<' + qname + (uri === '' ? '' : ' xmlns' + (prefix === '' ? '' : ':' + prefix) + '="' + inAttribute(uri) + '"') + '/>');
    const parent = whole ? space : typeof space === 'string' ? undefined : last;
    if (parent !== null && parent !== undefined) parent.addChild(element);
    return element;
  },
  // A text stands for itself.
  createOMText(parent, text) {
    if (text === undefined) return String(parent);
    parent.appendChild(String(text));
    return String(text);
  },
};
const OMAbstractFactory = { getOMFactory: () => factory, getSOAP11Factory: () => factory, getSOAP12Factory: () => factory };
