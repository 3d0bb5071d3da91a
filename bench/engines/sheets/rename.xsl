<!-- Reverses the name of every element of an order message: a template rule per element. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"
    xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:m="http://services.samples/xsd">
<xsl:output method="xml" omit-xml-declaration="yes"/>
<xsl:template match="soapenv:Envelope"><soapenv:Envelope><xsl:apply-templates/></soapenv:Envelope></xsl:template>
<xsl:template match="soapenv:Body"><soapenv:Body><xsl:apply-templates/></soapenv:Body></xsl:template>
<xsl:template match="m:skcotSyub"><m:buyStocks><xsl:apply-templates/></m:buyStocks></xsl:template>
<xsl:template match="redro"><order><xsl:apply-templates/></order></xsl:template>
<xsl:template match="lobmys"><symbol><xsl:value-of select="."/></symbol></xsl:template>
<xsl:template match="DIreyub"><buyerID><xsl:value-of select="."/></buyerID></xsl:template>
<xsl:template match="ecirp"><price><xsl:value-of select="."/></price></xsl:template>
<xsl:template match="emulov"><volume><xsl:value-of select="."/></volume></xsl:template>
</xsl:stylesheet>
